"""What happened over time, over REST and for Prometheus: GPU-hours, accounting, series, incidents."""
