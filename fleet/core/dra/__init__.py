"""Dynamic resource allocation (resource.k8s.io): devices that pods ask for by claims, as amounts of resources."""
