"""How many jobs have left a tainted cluster lately: what the rate limit of evictions counts."""

from django.db import models


class EvictionWindow(models.Model):
    """One row for each cluster that jobs had to leave; shared by all workers, and kept over restarts."""

    cluster = models.OneToOneField(
        "fleet.Cluster", primary_key=True, on_delete=models.CASCADE, related_name="+", db_constraint=False
    )
    """Without a constraint: counting must lock no row of the cluster."""
    ends_at = models.DateTimeField()
    count = models.PositiveIntegerField(default=0)
    """Evictions in this window; one more than the limit once the limit was reported."""

    def __str__(self) -> str:
        return f"{self.count} until {self.ends_at}"
