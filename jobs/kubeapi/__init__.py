"""Demand through the Kubernetes-style door: jobs, policies, what travels with jobs, and what was decided for them."""
