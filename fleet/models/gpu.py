"""What GPUs do, as exporters in members measure it: the last reading of each, and its use minute by minute."""

from django.db import models

from fleet.models.cluster import Cluster


class GpuScrape(models.Model):
    """When the exporters of a cluster are read next, and how it went the last time. A worker that does it moves the time."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="gpu_scrape")
    due_at = models.DateTimeField()
    read_at = models.DateTimeField(null=True, blank=True)
    """When an exporter has answered last."""
    exporters = models.PositiveIntegerField(default=0)
    answered = models.PositiveIntegerField(default=0)
    message = models.CharField(max_length=300, blank=True)
    """Why not all of them were read; empty: all were."""

    failed = models.JSONField(default=dict, db_default={})
    """Nodes whose exporters did not answer last, and when they were asked, in seconds since the epoch."""

    def __str__(self) -> str:
        return f"GPU readings of cluster {self.cluster_id}"


class NodeReading(models.Model):
    """The GPUs of one node as its exporter printed them last."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="gpu_readings")
    node = models.CharField(max_length=253)
    at = models.DateTimeField()
    gpus = models.JSONField(default=list)
    """Of `fleet.core.gpu_readings.Reading`, by index."""
    measured = models.PositiveIntegerField(default=0)
    """GPUs of which the utilisation is known."""
    utilization = models.FloatField(default=0)
    """The sum over them, in percent."""
    idle_since = models.DateTimeField(null=True, blank=True)
    """Since when the one of its GPUs has been idle that has been so the longest; null: none is."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "node"], name="gpu_reading_once_per_node")]
        indexes = [models.Index(fields=["at"], name="gpu_readings_by_time")]

    def __str__(self) -> str:
        return f"{self.cluster_id}/{self.node}"


class GpuHour(models.Model):
    """The utilisation of one node's GPUs in one hour: of each, a value for each minute that was measured."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="gpu_hours")
    node = models.CharField(max_length=253)
    hour = models.BigIntegerField()
    """Its beginning, in seconds since the epoch."""
    minutes = models.JSONField(default=dict)
    """GPU -> minute of the hour -> percent, as it was last measured in that minute."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "node", "hour"], name="gpu_hour_once_per_node")]
        indexes = [models.Index(fields=["hour"], name="gpu_hours_by_time")]

    def __str__(self) -> str:
        return f"{self.cluster_id}/{self.node} from {self.hour}"
