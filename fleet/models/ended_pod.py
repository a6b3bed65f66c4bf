"""Pods of fleet jobs that have ended or are being stopped, with what is kept of their logs.

Neither goes with the pod's row or with its cluster.
"""

import uuid

from django.db import models

from fleet.models.cluster import Cluster
from fleet.models.encrypted import EncryptedJSONField


class EndedPod(models.Model):
    """Written in the transaction that records the end, so that a log which is to be read is never forgotten."""

    class State(models.TextChoices):
        DUE = "Due"
        KEPT = "Kept"
        LOST = "Lost"

    ref = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    """Names its files, where logs are kept in a folder."""
    cluster = models.ForeignKey(Cluster, on_delete=models.SET_NULL, null=True, related_name="+")
    """Empty once the cluster has left."""
    cluster_name = models.CharField(max_length=63)
    cluster_uid = models.UUIDField()
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64)
    job_uid = models.UUIDField(db_index=True)
    attempt = models.PositiveIntegerField()
    role = models.CharField(max_length=63, blank=True)
    index = models.PositiveIntegerField(default=0)
    pod = models.TextField()
    """JSON of the remaining columns of its row in `Pod`."""
    ended_at = models.DateTimeField(db_index=True)
    """When the fleet saw its end, or began to stop it."""
    has_ended = models.BooleanField(default=True, db_default=True)
    """False while Convoy stops it: its log is read at once, and again when its end is seen."""
    state = models.CharField(max_length=8, choices=State.choices, default=State.DUE)
    message = models.CharField(max_length=300, blank=True)
    """Why its log, or a part of it, could not be read."""
    due_at = models.DateTimeField(null=True, db_index=True)
    """When its log is to be read; empty once that is over. A worker that begins to read moves it, and so claims the pod."""
    tries = models.PositiveIntegerField(default=0)
    stored_bytes = models.BigIntegerField(default=0)
    """What the pod and its logs take, compressed."""

    class Meta:
        ordering = ["ended_at", "pk"]
        constraints = [models.UniqueConstraint(fields=["cluster_uid", "uid"], name="ended_pod_once")]
        indexes = [models.Index(fields=["namespace", "name"], name="ended_pod_by_name")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ArchivedLog(models.Model):
    """The end of one container's log: compressed, and encrypted with a key of its own, so that keys can be rotated."""

    pod = models.ForeignKey(EndedPod, on_delete=models.CASCADE, related_name="logs")
    number = models.PositiveIntegerField()
    """Its place among the logs of the pod: init containers first."""
    container = models.CharField(max_length=63)
    previous = models.BooleanField(default=False)
    """Of the container's run before its last."""
    is_cut = models.BooleanField(default=False)
    """Whether there was more of it than is kept."""
    is_early = models.BooleanField(default=False, db_default=False)
    """Read before the pod had ended: what it printed last may be missing."""
    text_bytes = models.BigIntegerField()
    key = EncryptedJSONField()
    data = models.BinaryField(null=True)
    """Empty where it is a file of the folder that the operator has set."""

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["pod", "number"], name="archived_log_once")]

    def __str__(self) -> str:
        return f"{self.pod} {self.container}"
