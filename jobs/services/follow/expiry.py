"""Deletes jobs whose time to live after their end is over.

The fleet honours `ttlSecondsAfterFinished` itself and sends copies without it: a member that deletes a copy at once
would delete the report of its end as well, and the job would be run again.
"""

from datetime import datetime, timedelta
from functools import partial

from fleet.db import isolation
from fleet.errors import Conflict
from jobs.models import Job
from jobs.services.submission import actions

_DELETED_PER_PASS = 200
"""Jobs deleted by one pass: the next one is seconds away."""


def run(now: datetime) -> int:
    """Deletes every finished job that is due; returns how many."""
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
        actions.delete(job, by=f"its time to live of {ttl_s} s after its end", now=now)
    except Conflict:
        return False
    return True
