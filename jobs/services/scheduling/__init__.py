"""Scheduling: loads the snapshot, runs the cycle, writes its plan; quota charges and preemption orders with it."""
