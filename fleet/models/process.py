"""Which of our processes are alive, and which of them holds a task that only one may do at a time."""

from django.db import models


class Heartbeat(models.Model):
    """A process is alive when it says so here, not when its pid exists."""

    role = models.CharField(max_length=32)
    """worker, beat or watcher."""
    instance = models.CharField(max_length=128)
    at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["role", "instance"], name="heartbeat_once")]


class Lease(models.Model):
    """Held by one process until it expires; the epoch fences writes of a former holder."""

    name = models.CharField(max_length=63, primary_key=True)
    holder = models.CharField(max_length=128, blank=True)
    epoch = models.BigIntegerField(default=0)
    expires_at = models.DateTimeField(null=True, blank=True)


class LeaseRequests(models.Model):
    """How often the work that a lease guards was requested, how much of it is served, and when.

    The holder works until all are served, so a request that finds the lease taken is never lost. A row of its own: the
    lease's stays locked for as long as its holder writes, and a request must not wait for that. Times are the database's.
    """

    lease = models.CharField(max_length=63, primary_key=True)
    count = models.BigIntegerField(default=0)
    served = models.BigIntegerField(null=True, default=0)
    """The value of ``count`` when the last completed run began; null: no version that records this has run yet."""
    asked_at = models.DateTimeField(null=True)
    """Since when requests have waited without a run being completed; null: none waits."""
    completed_at = models.DateTimeField(null=True)
    """When a run was last completed without an error."""


class ClockReading(models.Model):
    """What the shared clock last showed: one row, written by the sweep, so that a step of the clock is seen."""

    at = models.DateTimeField()
    stepped = models.DurationField()
    """How far the clock has stepped in all: without that it would be at a time that never jumps."""


class ClockStep(models.Model):
    """A step of the shared clock, by which no duration counts as passed (`fleet.core.clock_steps`)."""

    before = models.DateTimeField()
    after = models.DateTimeField()
    by = models.DurationField()
    noted_at = models.DateTimeField()
