"""A namespace that a person has created or annotated; every other one is there for as long as something is in it."""

import uuid

from django.db import models


class Namespace(models.Model):
    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=63, unique=True)
    annotations = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    deleting_at = models.DateTimeField(null=True, blank=True)
    """Since when it is being deleted: nothing is created in it until the last of its objects is gone."""
    resource_version = models.BigIntegerField(default=0)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
