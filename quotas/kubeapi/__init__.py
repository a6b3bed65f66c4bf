"""Entitlement through the Kubernetes-style door: the quota tree and its queues."""
