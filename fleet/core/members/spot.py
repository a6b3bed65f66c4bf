"""Which nodes their provider may take back at any time, and of which pool they are: by the labels that providers set. Pure."""

from collections.abc import Mapping

SPOT: Mapping[str, str] = {
    "karpenter.sh/capacity-type": "spot",
    "eks.amazonaws.com/capacityType": "SPOT",
    "cloud.google.com/gke-spot": "true",
    "cloud.google.com/gke-preemptible": "true",
    "kubernetes.azure.com/scalesetpriority": "spot",
    "node.kubernetes.io/lifecycle": "spot",
    "lifecycle": "spot",
}
"""Label and value, either of which marks a node; the last is that of the simulated market and of nodes labelled by hand."""
POOLS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "alibabacloud.com/nodepool-id",
    "pool",
)
"""Labels that name a node's pool, the first that is there."""
UNNAMED = "spot"
"""The pool of spot nodes that no label names."""


def pool_of(labels: Mapping[str, str]) -> str:
    """The pool of a spot node; empty: it is none."""
    if not any(labels.get(label) == value for label, value in SPOT.items()):
        return ""
    return next((labels[label] for label in POOLS if labels.get(label)), UNNAMED)
