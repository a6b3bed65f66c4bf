"""Authorization: users, grants, roles, and what the workloads of a namespace may ask for."""
