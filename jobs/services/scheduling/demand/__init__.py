"""What the quota tree needs to know of jobs: their leaf, their priority, what they use, and when they may start."""
