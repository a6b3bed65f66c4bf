"""Values over time: recorded by one process at a time, down-sampled, forgotten, and read."""
