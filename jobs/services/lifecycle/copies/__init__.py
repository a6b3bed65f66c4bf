"""What is known of the copies of a job in members: whose they are, which may still run, and what they keep."""
