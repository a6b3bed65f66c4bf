"""Where the data of a volume claim is: the clusters that were sent the claim, and hold what its jobs wrote since."""

from django.db import models


class ClaimLocation(models.Model):
    """One cluster that has the claim. Written before the claim is sent there, removed once it is not there any more."""

    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    cluster = models.ForeignKey("fleet.Cluster", on_delete=models.CASCADE, related_name="claim_locations")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["namespace", "name", "cluster"], name="claim_once_per_cluster"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} on {self.cluster_id}"
