"""Values over time: what is kept, how it is counted from the runs of jobs, and how it is down-sampled. Pure."""
