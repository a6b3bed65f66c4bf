"""Rules of a job's life: which actions a state allows, and when a job leaves its cluster. Pure."""
