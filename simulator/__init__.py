"""A simulated member cluster: a Kubernetes API server in Python and the controllers that bring it to life."""
