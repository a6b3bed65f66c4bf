"""Requests of Kubernetes clients: bodies, options, selectors, and the Status that refuses one."""
