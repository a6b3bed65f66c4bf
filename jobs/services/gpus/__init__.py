"""What GPUs do for the jobs that have them: utilisation by node and job, and those that are allocated and idle."""
