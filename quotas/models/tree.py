"""The quota tree as applied. What it means is read from the manifest by `quotas.core.trees.parsing`."""

import uuid

from django.db import models


class QuotaTree(models.Model):
    """At most one row: ``only`` is unique and always true."""

    kind = "ElasticQuotaTree"

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    only = models.BooleanField(default=True, unique=True, editable=False)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    manifest = models.JSONField()
    """As submitted, without status and without what a server fills in."""
    generation = models.PositiveIntegerField(default=1)
    """Rises with every change of the manifest: what was derived from an older tree has to be derived again."""
    created_at = models.DateTimeField()
    changed_by = models.CharField(max_length=150, blank=True)
    resource_version = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(only=True), name="only_one_quota_tree")]
        verbose_name_plural = "Quota tree"

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
