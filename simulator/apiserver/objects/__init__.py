"""The objects of a simulated member: stored with their history, filled in, validated, and deleted with their dependents."""
