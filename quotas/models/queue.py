"""A queue: where the jobs of one node of the quota tree wait. Made and removed with its node, never by hand."""

import uuid

from django.db import models


class Queue(models.Model):
    """A node that stays keeps its queue, and the queue its name, whatever else changes in the tree."""

    kind = "Queue"
    namespace = "kube-queue"

    class State(models.TextChoices):
        OPEN = "Open"
        HELD = "Held"
        """Admits nothing; what runs goes on."""
        DRAINING = "Draining"
        """Admits nothing and takes no more jobs; what runs goes on."""
        STOPPED = "Stopped"
        """Admits nothing, and preempts what runs."""

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=63, unique=True)
    """As the documentation prints it: ``root-kdzw7``, ``root-child-2-v5zxz``."""
    path = models.CharField(max_length=700, unique=True)
    """The full path of its node in the tree."""
    leaf = models.BooleanField()
    state = models.CharField(max_length=16, choices=State.choices, default=State.OPEN)
    state_by = models.CharField(max_length=150, blank=True)
    state_at = models.DateTimeField(null=True)
    """When it was last held, drained, stopped or opened; null: never."""
    state_comment = models.CharField(max_length=500, blank=True)
    spent = models.JSONField(null=True, blank=True)
    """While the budget of its node is used up: ``{when, until, used, hours, per, message}``; null: it is not, or has none."""
    window = models.JSONField(null=True, blank=True)
    """While a window of its node is open: ``{min, max, begin, until}``, the amounts in whole units; null: none is."""
    created_at = models.DateTimeField()
    resource_version = models.BigIntegerField(default=0)

    class Meta:
        ordering = ["path"]

    def __str__(self) -> str:
        return self.name
