"""A member's node as the fleet sees it: what it offers and what its pods already ask of it."""

from django.db import models

from fleet.models.cluster import Cluster


class Node(models.Model):
    """Amounts are whole units: milli-CPU under ``cpu``, bytes under ``memory``, devices under their resource name."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="nodes")
    name = models.CharField(max_length=253)
    ready = models.BooleanField(default=False)
    not_ready_since = models.DateTimeField(null=True, blank=True)
    """When it was first seen not to be ready; null: it is, or has not been since that is written."""
    unschedulable = models.BooleanField(default=False)
    address = models.CharField(max_length=64, blank=True)
    """Inside its cluster's network: a table of switches knows it by that."""
    problem = models.CharField(max_length=200, blank=True, default="", db_default="")
    """What its own conditions and taints say is faulty; empty: nothing."""
    labels = models.JSONField(default=dict)
    taints = models.JSONField(default=list)
    allocatable = models.JSONField(default=dict)
    requested = models.JSONField(default=dict)
    """The sum of what all bound, unfinished pods of the node ask, those of other users included; ``pods`` counts them."""
    reclaimable = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    """What of that best-effort pods ask: their places may be taken back at any time."""

    class Meta:
        ordering = ["cluster", "name"]
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="node_once_per_cluster")]
        indexes = [
            models.Index(fields=["cluster"], condition=~models.Q(problem=""), name="nodes_with_problems"),
            models.Index(fields=["cluster"], condition=models.Q(ready=False), name="nodes_not_ready"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster_id}/{self.name}"
