"""Failover: why attempts fail, how jobs leave clusters, copies that return, and the shares of divided jobs."""
