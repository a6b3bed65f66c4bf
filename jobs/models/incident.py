"""Incidents: one row for each cause, to which the attempts point that it ended."""

import uuid

from django.db import models


class Incident(models.Model):
    """One cause and what followed from it; what followed is read from the attempts that point to it."""

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    kind = models.CharField(max_length=32)
    """As `jobs.core.failover.incidents.IncidentKind`."""
    subject = models.CharField(max_length=400)
    """What failures have in common to belong together; one incident of a subject is open at a time."""
    cluster_name = models.CharField(max_length=63)
    nodes = models.JSONField(default=list)
    """The nodes that were lost, as the evidence of the attempts names them."""
    reason = models.CharField(max_length=64, blank=True)
    """Of an outage: the reason of the cluster's state."""
    message = models.CharField(max_length=500, blank=True)
    began_at = models.DateTimeField()
    """The first signal: a look at the cluster that failed, or the first attempt that ended."""
    declared_at = models.DateTimeField()
    """When the signal was acted upon: the cluster was no longer Ready, or the attempt was closed."""
    last_at = models.DateTimeField()
    """The latest attempt that it ended; of an outage also the latest change of its reason."""
    over_at = models.DateTimeField(null=True, blank=True)
    """When its cause was over; null: it lasts."""

    class Meta:
        ordering = ["-began_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["subject"], condition=models.Q(over_at__isnull=True), name="incident_open_once"
            ),
        ]
        indexes = [
            models.Index(fields=["-began_at"], name="incidents_by_begin"),
            models.Index(fields=["subject", "-began_at"], name="incidents_by_subject"),
            models.Index(fields=["over_at"], condition=models.Q(over_at__isnull=False), name="incidents_to_forget"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"
