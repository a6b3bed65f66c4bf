"""The operators of the kinds of jobs that a simulated member runs, one file or folder for each kind."""
