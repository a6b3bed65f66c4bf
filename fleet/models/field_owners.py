"""Who manages which field of an object that is written through the Kubernetes-style door: its ``managedFields``."""

from django.db import models


class FieldOwners(models.Model):
    """Beside the object, whose own row knows nothing of it; no owners are written down by other doors."""

    object_uid = models.CharField(max_length=64, primary_key=True)
    entries = models.JSONField()

    class Meta:
        verbose_name_plural = "field owners"

    def __str__(self) -> str:
        return self.object_uid
