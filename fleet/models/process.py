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
    """Held by one process until it expires; the epoch fences writes of a former holder.

    ``wanted`` counts requests for the work the lease guards: the holder works until what it served equals what is wanted,
    so a request that finds the lease taken is never lost.
    """

    name = models.CharField(max_length=63, primary_key=True)
    holder = models.CharField(max_length=128, blank=True)
    epoch = models.BigIntegerField(default=0)
    expires_at = models.DateTimeField(null=True, blank=True)
    wanted = models.BigIntegerField(default=0)
