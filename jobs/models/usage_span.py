"""What a job did with its time, for accounting: written once when the job has ended or is deleted, and never changed."""

from django.db import models


class UsageSpan(models.Model):
    """One stretch of an attempt, or of the waiting between attempts. It refers to no row, so it outlives its job."""

    job_uid = models.UUIDField()
    number = models.PositiveIntegerField()
    """Of the attempt; 0: the job waited."""
    kind = models.CharField(max_length=16)
    """`jobs.core.explain.timeline.Owner`: member, image or running of an attempt; who held the job up while it waited.

    Of a run that was cut short, where it is known until when it had saved its work: ``saved`` and ``unsaved``, not running.
    """
    begin = models.DateTimeField()
    end = models.DateTimeField(db_index=True)
    gpus = models.PositiveIntegerField()
    """Held or used by the attempt; while the job waited, what it asked for."""
    outcome = models.CharField(max_length=32, blank=True)
    """Of the attempt, as `jobs.models.Attempt.outcome`; empty: the job waited."""
    reason = models.CharField(max_length=64, blank=True, db_default="")
    """Code of the job's reason while it waited; empty: an attempt, or the code was not kept yet."""
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253, blank=True, db_default="")
    """Of the job; empty: it was not kept yet."""
    user = models.CharField(max_length=150, blank=True)
    leaf = models.CharField(max_length=700, blank=True)
    cluster = models.CharField(max_length=63, blank=True)
    model = models.CharField(max_length=253, blank=True)
    """Of the cluster's GPUs, as its nodes named it then."""
    price = models.FloatField(null=True)
    """Of a GPU-hour, as the labels of the cluster said it then; null: they said none."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job_uid", "number", "kind", "begin"], name="usage_span_once"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.job_uid}#{self.number}"
