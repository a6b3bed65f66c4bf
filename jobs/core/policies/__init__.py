"""Policies as read from manifests: propagation, overrides, quota entitlement, taints and tolerations. Pure."""
