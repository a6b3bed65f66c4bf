"""The steps of a job's life as rows: works, charges, transitions. No member is touched here."""
