"""At which pace attempts make steps, by their own reports, and when they made none for too long."""

from django.db import models

from jobs.models.job import Job


class Pace(models.Model):
    """Of one attempt that reports its steps, as `jobs.runtime.hangs.Pace`."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="paces", db_index=False)
    attempt = models.PositiveIntegerField()
    step = models.BigIntegerField()
    step_at = models.DateTimeField()
    """When that step was first reported."""
    saved_step = models.BigIntegerField(null=True, blank=True)
    mean_s = models.FloatField(null=True, blank=True)
    saving_s = models.FloatField(default=0.0)
    longest_save_s = models.FloatField(default=0.0)
    seen_at = models.DateTimeField()
    """The time of the report that was read last."""
    due_at = models.DateTimeField(null=True, blank=True)
    """When its silence is too long, or is to be looked at again; null: it is not judged yet, or is known to hang."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "attempt"], name="pace_once_per_attempt")]
        indexes = [models.Index(fields=["due_at"], condition=models.Q(due_at__isnull=False), name="paces_due")]

    def __str__(self) -> str:
        return f"step {self.step} of attempt {self.attempt}"


class Hang(models.Model):
    """A silence that was too long."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="hangs", db_index=False)
    attempt = models.PositiveIntegerField()
    step = models.BigIntegerField()
    """The last one that was reported before."""
    since = models.DateTimeField()
    found_at = models.DateTimeField()
    over_at = models.DateTimeField(null=True, blank=True)
    """When it made a step again; null: it has not, or its attempt has ended."""
    policy = models.CharField(max_length=16)
    """`jobs.core.failover.hang_policy.HangPolicy` as it was then."""
    notify_due_at = models.DateTimeField(null=True, blank=True)
    """When the webhook is to be called, at the earliest; null: it was, or there is none."""
    notify_tries = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ["since", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["job", "attempt", "since"], name="hang_once"),
        ]
        indexes = [
            models.Index(
                fields=["notify_due_at"], condition=models.Q(notify_due_at__isnull=False), name="hangs_to_notify"
            )
        ]

    def __str__(self) -> str:
        return f"attempt {self.attempt} after step {self.step}"
