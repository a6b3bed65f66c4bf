"""GPU-time of jobs that were deleted: it goes on counting for the shares of their queues and users."""

from django.db import models


class DeletedUse(models.Model):
    """One attempt of a deleted job."""

    job = models.BigIntegerField()
    """The primary key that the job had."""
    number = models.PositiveIntegerField()
    leaf = models.CharField(max_length=700)
    user = models.CharField(max_length=150, blank=True)
    gpus = models.PositiveIntegerField()
    sizes = models.JSONField(null=True, blank=True)
    """As `jobs.models.Attempt.sizes`."""
    placed_at = models.DateTimeField()
    ended_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="use_deleted_once")]

    def __str__(self) -> str:
        return f"{self.gpus} GPUs of {self.leaf} until {self.ended_at}"
