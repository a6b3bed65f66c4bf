"""What jobs wait for by their annotation ``convoy.dev/after``: a row for each predecessor that a job names."""

from django.db import models

from jobs.models.job import Job


class Dependency(models.Model):
    """The predecessor is named and not referred to: it may be submitted later, or be gone already."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="dependencies", db_index=False)
    """Its index is that of the constraint."""
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    kind = models.CharField(max_length=63, blank=True)
    """Empty: of any kind."""
    on = models.CharField(max_length=3)
    """`jobs.core.life.dependencies.On`."""
    last = models.CharField(max_length=16, blank=True)
    """What had become of the predecessor that was deleted last; empty: none was."""
    met_at = models.DateTimeField(null=True, blank=True)
    """Since when it holds the job up no more, whatever becomes of the predecessor."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "name", "kind"], name="dependency_once")]
        indexes = [
            models.Index(
                fields=["namespace", "name"], condition=models.Q(met_at__isnull=True), name="dependencies_open"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job_id} after {self.namespace}/{self.name}"
