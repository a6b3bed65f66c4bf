"""What follows when a time is over: failover of unhealthy jobs, the ends of jobs that wait or run too long, deletion."""
