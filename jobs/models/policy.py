"""A PropagationPolicy or ClusterPropagationPolicy: which jobs it claims and how they are placed and moved."""

import uuid

from django.db import models


class Policy(models.Model):
    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=63, blank=True)
    """Empty for a ClusterPropagationPolicy."""
    name = models.CharField(max_length=253)
    manifest = models.JSONField()
    generation = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    resource_version = models.BigIntegerField(default=0)

    class Meta:
        ordering = ["namespace", "name"]
        verbose_name_plural = "policies"
        constraints = [
            models.UniqueConstraint(fields=["kind", "namespace", "name"], name="policy_once_per_namespace"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
