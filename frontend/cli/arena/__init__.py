"""The command lines of arena: what they print of jobs and nodes, and the program ``arena``."""
