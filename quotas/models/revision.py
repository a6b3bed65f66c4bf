"""What the quota tree was, generation by generation: who changed it, when, through which door, and why."""

from django.db import models


class QuotaRevision(models.Model):
    """One saved change; never written again."""

    generation = models.PositiveIntegerField(unique=True)
    manifest = models.JSONField(null=True)
    """Null: the tree was deleted."""
    by = models.CharField(max_length=150, blank=True)
    at = models.DateTimeField()
    comment = models.CharField(max_length=500, blank=True)
    source = models.CharField(max_length=16, blank=True)
    """The door it came through: kubectl, rest, admin; empty for the product itself."""

    class Meta:
        ordering = ["-generation"]
        verbose_name_plural = "History of the tree"

    def __str__(self) -> str:
        return f"generation {self.generation}"
