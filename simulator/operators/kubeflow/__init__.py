"""The training operator for the kubeflow.org kinds."""
