"""The steps of a job's life as rows: works, charges, shares, failover. No member is touched here."""
