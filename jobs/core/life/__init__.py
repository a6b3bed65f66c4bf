"""The model of the life of jobs, their works and their attempts: states, events, and who may bring an event about. Pure."""
