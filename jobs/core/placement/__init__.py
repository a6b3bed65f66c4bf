"""Placement: which cluster and which nodes hold a gang whole, and why the others do not. Pure."""
