"""The operators of the job kinds a simulated member runs, one file or folder per kind."""
