"""The fault engine: the whole product against simulated members, struck at a chosen step, and judged from outside.

`docs/proposals/0009-fault-engine.md` says why. Reading order: `schedules`, `steps`, `world`, `judge`.
"""
