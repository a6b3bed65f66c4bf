"""The rows of the one list of changes; written by `fleet.changes.journal` alone."""

from django.db import models


class JournalEntry(models.Model):
    """The primary key is the resource version. Says that something changed, never what it is now."""

    class Action(models.TextChoices):
        ADDED = "added"
        MODIFIED = "modified"
        DELETED = "deleted"

    version = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=63)
    group = models.CharField(max_length=128, blank=True, default="")
    """Of the API, ``batch/``, where kinds of several groups share a name; empty: whatever is of the kind."""
    namespace = models.CharField(max_length=63, blank=True)
    name = models.CharField(max_length=253)
    object_uid = models.CharField(max_length=64)
    action = models.CharField(max_length=8, choices=Action.choices)
    at = models.DateTimeField()

    class Meta:
        ordering = ["version"]
