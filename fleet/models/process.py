"""Which of our processes are alive, and who of them holds a task that only one may do at a time."""

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
    """How often the work that a lease guards was asked for.

    The holder works until it served them all, so a request that finds the lease taken is never lost. A row of its own: the
    lease's stays locked for as long as its holder writes, and nobody who asks is to wait for that.
    """

    lease = models.CharField(max_length=63, primary_key=True)
    count = models.BigIntegerField(default=0)
