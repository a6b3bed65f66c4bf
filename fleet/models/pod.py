"""The pods of the fleet's own jobs, mirrored from the members, so that showing one takes no request to its member."""

from django.db import models

from fleet.models.cluster import Cluster


class Pod(models.Model):
    """Only pods labelled ``convoy.dev/job-uid`` are kept; other pods count in `Node.requested` alone."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="pods")
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64)
    job_uid = models.UUIDField(db_index=True)
    attempt = models.PositiveIntegerField()
    role = models.CharField(max_length=63, blank=True)
    index = models.PositiveIntegerField(default=0)
    node = models.CharField(max_length=253, blank=True)
    phase = models.CharField(max_length=16)
    """Pending, Running, Succeeded, Failed or Unknown."""
    ready_containers = models.PositiveIntegerField(default=0)
    containers = models.PositiveIntegerField(default=1)
    restarts = models.PositiveIntegerField(default=0)
    reason = models.CharField(max_length=128, blank=True)
    message = models.CharField(max_length=1000, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    """The first code other than 0 with which a container ended, now or before its last restart."""
    disruption = models.CharField(max_length=64, blank=True, default="", db_default="")
    """Reason of the condition DisruptionTarget: the member takes the pod away."""
    running_since = models.DateTimeField(null=True, blank=True)
    """When the container started last that did; empty while one of them does not run."""
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    details = models.TextField(blank=True, default="", db_default="")
    """JSON of `fleet.core.members.pods.pod_details`; empty until a watcher that keeps it has listed the member."""
    state = models.TextField(blank=True, default="", db_default="")
    """JSON of `fleet.core.members.pods.pod_state`: the annotations that later attempts of the job get."""

    class Meta:
        ordering = ["namespace", "name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "namespace", "name"], name="pod_once_per_cluster"),
        ]
        indexes = [
            models.Index(fields=["namespace", "name", "cluster"], name="pod_in_order_of_lists"),
            models.Index(fields=["uid"], name="pod_by_uid"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
