"""Values over time as rows. A point is stored only where a value changes; points are never written again."""

from django.db import models


class Series(models.Model):
    """One value of one cluster, GPU model, queue, team, or of the fleet: `jobs.core.series.catalogue.Key`."""

    metric = models.CharField(max_length=16)
    dimension = models.CharField(max_length=16)
    name = models.CharField(max_length=700, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dimension", "name", "metric"], name="series_once")]

    def __str__(self) -> str:
        return f"{self.metric} of {self.dimension} {self.name}".strip()


class SeriesPoint(models.Model):
    """From this bucket on the series has this value, until its next point of the same step."""

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="points", db_index=False)
    """Its index is that of the constraint."""
    step = models.PositiveSmallIntegerField()
    at = models.BigIntegerField()
    """The beginning of the bucket, in seconds since the epoch."""
    value = models.FloatField(null=True)
    """Null: not known."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["series", "step", "at"], name="series_point_once")]
        indexes = [models.Index(fields=["step", "at"], name="series_points_by_time")]

    def __str__(self) -> str:
        return f"{self.series_id} from {self.at}: {self.value}"


class SeriesProgress(models.Model):
    """How far the series are recorded, in seconds since the epoch; at most one row."""

    only = models.BooleanField(default=True, unique=True, editable=False)
    begun = models.BigIntegerField()
    fine = models.BigIntegerField()
    """The end of what is recorded in buckets of 10 s."""
    minute = models.BigIntegerField()
    hour = models.BigIntegerField()
    version = models.BigIntegerField(default=-1)
    """Of the journal, when it was last read for the series."""
    version_since = models.BigIntegerField(default=0)
    """When the journal was first seen to have this version, or the last time that a point was stored."""

    def __str__(self) -> str:
        return f"until {self.fine}"
