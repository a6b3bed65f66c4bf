"""Capacity promised to a gang whose pods cannot be seen on nodes yet.

Durable, so a restart forgets no promise. A hold ends only when the gang's pods are bound and visible in `Node.requested`,
or when the placement is undone (invariant I2); never because a job looks healthy.
"""

from django.db import models

from fleet.models.cluster import Cluster


class Hold(models.Model):
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="holds")
    job_uid = models.UUIDField()
    attempt = models.PositiveIntegerField()
    amounts = models.JSONField()
    """The gang's total, in the whole units of `Node`, ``pods`` included."""
    nodes = models.JSONField(default=list)
    """``[[amounts, [names]]]``: what each of the nodes holds of it; empty: only the sum is held."""
    pods = models.PositiveIntegerField()
    made_at = models.DateTimeField()
    released_at = models.DateTimeField(null=True, blank=True)
    resized_at = models.DateTimeField(null=True, blank=True)
    """When a resize of its job changed it last: from then on it ends when enough pods *live*, because of the earlier ones some
    may have ended; null: it is as it was made."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job_uid", "attempt"], name="hold_once_per_attempt")]
        indexes = [models.Index(fields=["released_at", "cluster"])]

    def __str__(self) -> str:
        return f"{self.job_uid}#{self.attempt}"
