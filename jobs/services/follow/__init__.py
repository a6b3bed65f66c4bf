"""Follow: status reports of members, failover, and the periodic sweep behind every event."""
