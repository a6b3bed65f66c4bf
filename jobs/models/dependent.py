"""Objects a job's pods refer to and that travel with it: ConfigMap, Secret, ServiceAccount, PersistentVolumeClaim."""

import uuid

from django.db import models

from fleet.models.encrypted import EncryptedJSONField


class Dependent(models.Model):
    """All are encrypted at rest: a ConfigMap may hold a secret as well as a Secret does."""

    KINDS = ("ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim")

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    manifest = EncryptedJSONField()
    generation = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    resource_version = models.BigIntegerField(default=0)

    class Meta:
        ordering = ["namespace", "kind", "name"]
        constraints = [
            models.UniqueConstraint(fields=["kind", "namespace", "name"], name="dependent_once_per_namespace"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
