"""Where the data of a volume claim is: the clusters that were sent the claim, and hold what its jobs wrote since."""

from django.db import models


class ClaimLocation(models.Model):
    """One cluster that has the claim. Written before the claim is sent there, removed once it is not there any more."""

    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    cluster = models.ForeignKey("fleet.Cluster", on_delete=models.CASCADE, related_name="claim_locations")
    created_at = models.DateTimeField()
    node_terms = models.JSONField(null=True, blank=True)
    """The nodes that reach its volume, ``[[[key, operator, values], ...], ...]``; empty: all; None: not known yet."""
    read_due_at = models.DateTimeField(null=True, blank=True)
    """When the cluster is asked for that next; None: at once."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["namespace", "name", "cluster"], name="claim_once_per_cluster"),
        ]
        indexes = [
            models.Index(fields=["read_due_at"], condition=models.Q(node_terms__isnull=True), name="claims_to_read"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} on {self.cluster_id}"
