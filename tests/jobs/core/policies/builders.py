"""The clusters that the tests of policies know."""

KNOWN = [("batch/v1", "Job"), ("kubeflow.org/v1", "PyTorchJob")]
