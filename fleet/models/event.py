"""What happened to an object, in words for people: the timeline of a job, the life of a cluster."""

import uuid

from django.db import models


def event_name(regarding: str, key: int) -> str:
    """As Kubernetes names events: after what they are about, and unlike any other."""
    return f"{regarding[:236]}.{key:015x}"


def event_space(regarding: str) -> str:
    """The namespace: that of what lives in none is ``default``, as in Kubernetes."""
    return regarding or "default"


class Event(models.Model):
    """As Kubernetes events: the same thing said again raises ``count`` and ``last_at`` instead of adding a row."""

    class Type(models.TextChoices):
        NORMAL = "Normal"
        WARNING = "Warning"

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    regarding_kind = models.CharField(max_length=63)
    regarding_namespace = models.CharField(max_length=63, blank=True)
    regarding_name = models.CharField(max_length=253)
    regarding_uid = models.CharField(max_length=64)
    type = models.CharField(max_length=8, choices=Type.choices, default=Type.NORMAL)
    reason = models.CharField(max_length=64)
    message = models.CharField(max_length=1024)
    source = models.CharField(max_length=63)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField(db_index=True)
    count = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ["-last_at", "-id"]
        indexes = [models.Index(fields=["regarding_uid"])]

    @property
    def object_name(self) -> str:
        return event_name(self.regarding_name, self.pk)

    @property
    def object_namespace(self) -> str:
        return event_space(self.regarding_namespace)

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"
