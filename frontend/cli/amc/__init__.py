"""``kubectl amc``: what runs in the clusters behind a fleet, shown by the habits of kubectl."""
