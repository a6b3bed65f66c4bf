"""Rules of failover without I/O: which actions a state allows, when a job leaves its cluster, and why attempts fail."""
