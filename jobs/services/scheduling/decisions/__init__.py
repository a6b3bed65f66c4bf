"""What a cycle decided, as rows: plan, growths, smaller sizes, preemption orders. Written under the scheduler's lease."""
