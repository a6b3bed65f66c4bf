"""Deletes finished jobs whose time to live (`ttlSecondsAfterFinished`) has expired.

The fleet applies the field itself and removes it from the copies. Otherwise a member could delete a copy before the watcher has
seen its end, and the job would run again.
"""

from datetime import datetime, timedelta
from functools import partial

from fleet.db import isolation
from fleet.errors import Conflict
from jobs.models import Job
from jobs.services.submission import actions

_DELETED_PER_PASS = 200
"""Most jobs that one pass deletes; the next pass follows within seconds."""


def run(now: datetime) -> int:
    """Deletes the finished jobs that are due, and returns how many."""
    finished = Job.objects.filter(state__in=Job.FINISHED, ttl_s__isnull=False, deleting_at__isnull=True).order_by()
    deleted = 0
    for ttl_s in finished.values_list("ttl_s", flat=True).distinct():
        if ttl_s is None:
            continue
        due = finished.filter(ttl_s=ttl_s, finished_at__lte=now - timedelta(seconds=ttl_s))
        deletions = isolation.each("expiry", due[:_DELETED_PER_PASS], partial(_delete, ttl_s=ttl_s, now=now), now)
        deleted += sum(deletions)
    return deleted


def _delete(job: Job, ttl_s: int, now: datetime) -> bool:
    try:
        actions.delete(job, by=f"ttlSecondsAfterFinished={ttl_s}", now=now)
    except Conflict:
        return False
    return True
