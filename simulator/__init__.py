"""A simulated member cluster: a Kubernetes API server in Python, and its controllers, scheduler, kubelet and operators."""
