"""Deletes finished jobs whose time to live (`ttlSecondsAfterFinished`) has expired.

The fleet applies the field itself and removes it from the copies. Otherwise a member could delete a copy before the watcher has
seen its end, and the job would run again.
"""

import time
from collections.abc import Callable
from datetime import datetime
from functools import partial

from django.db.models import Q, QuerySet

from fleet.db import isolation, pace, prepared
from fleet.db.durations import later_by
from fleet.db.prepared import TIME
from fleet.errors import Conflict
from fleet.services.operations import clock_steps
from jobs.models import Job
from jobs.services.submission.changes import actions

_DELETED_PER_PASS = 200
"""Most jobs that one pass deletes; the next pass follows within seconds."""
_PASS_S = 2.0
"""After which a pass ends, so that the sweep that it is part of comes to its other steps."""


def run(now: datetime, monotonic: Callable[[], float] = time.monotonic) -> int:
    """Deletes the finished jobs that are due, and returns how many."""
    passed = clock_steps.elapsed(now)
    if not _ANY_OVER.values(latest=passed.latest()):
        return 0
    due = _finished().filter(passed.due("finished_at", "until")).order_by()
    in_time = pace.within(_PASS_S, due[:_DELETED_PER_PASS], monotonic)
    return sum(isolation.each("expiry", in_time, partial(_delete, now=now), now))


def _finished() -> QuerySet[Job]:
    finished = Job.objects.filter(state__in=Job.FINISHED, ttl_s__isnull=False, deleting_at__isnull=True)
    return finished.alias(until=later_by("finished_at", "ttl_s"))


_ANY_OVER = prepared.Rows(
    lambda param: _finished().filter(Q(until__lte=param("latest", TIME))).order_by().values_list("pk")[:1]
)


def _delete(job: Job, now: datetime) -> bool:
    try:
        actions.delete(job, by=f"ttlSecondsAfterFinished={job.ttl_s}", now=now)
    except Conflict:
        return False
    return True
