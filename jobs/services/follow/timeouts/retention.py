"""Deletes finished jobs whose retention (`CONVOY_FINISHED_JOBS_KEEP_S`) is over, with their attempts, works, holds and copies.

A job with a time to live of its own is left to `expiry`, whichever of the two is longer. A job is kept beyond its retention
while something of it may still run or count: a copy that is not known to have ended, a copy that its policy leaves for a person
to look at, live pods, an open hold, a charge, or failures that still rank its cluster.

Each job is deleted in a transaction of its own, so that a pass that dies has deleted some jobs whole and no job in part. The
audit line of a pass is written before its first deletion and completed after the last.
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from fleet.changes.audit_context import Asking
from fleet.db import isolation, pace, prepared
from fleet.db.prepared import TIME
from fleet.errors import Conflict
from fleet.models import AuditEntry, Hold, Pod
from fleet.services.auditing import audit
from fleet.services.operations import clock_steps
from fleet.services.operations.clock_steps import Elapsed
from jobs import snapshot
from jobs.models import Job, Work
from jobs.services.submission.changes import actions

BATCH = 100
"""Jobs deleted by one pass: the next one is seconds away, and dispatch and scheduling are in between."""
PASS_S = 2.0
"""After which a pass ends, so that the sweep that it is part of comes to its other steps."""
_ACTOR = "system:retention"
_OVER = (Work.State.GONE, Work.State.APPLIED)
"""States of the works of a finished job whose copy is gone, or has ended by its member's word."""


def run(now: datetime, monotonic: Callable[[], float] = time.monotonic) -> int:
    """Deletes up to `BATCH` jobs, those that ended first; returns how many."""
    keep = timedelta(seconds=settings.CONVOY_RETENTION.finished_jobs_s)
    ended_before = min(now - keep, snapshot.failures_count_since(now))
    passed = clock_steps.elapsed(now)
    if not _ANY_OVER.values(latest=passed.latest(now - ended_before)):
        return 0
    jobs = list(_due(passed, now - ended_before)[:BATCH])
    if not jobs:
        return 0
    line = _begin(ended_before)
    in_time = pace.within(PASS_S, jobs, monotonic)
    deleted = sum(isolation.each("retention.jobs", in_time, partial(_delete, keep=keep, now=now), now))
    audit.ended(
        line, AuditEntry.Outcome.DONE, f"deleted {deleted} finished jobs that ended before {ended_before:%F %T} UTC"
    )
    return deleted


def _due(passed: Elapsed, keep: timedelta) -> QuerySet[Job]:
    return _over(passed.over("finished_at", keep))


def _over(condition: Q) -> QuerySet[Job]:
    own = {"job_uid": OuterRef("uid")}
    finished = Job.objects.filter(condition, state__in=Job.FINISHED, ttl_s=None, charge__isnull=True)
    return finished.filter(
        ~Exists(Work.objects.filter(**own).exclude(state__in=_OVER)),
        ~Exists(Hold.objects.filter(**own, released_at=None)),
        ~Exists(Pod.objects.filter(**own, phase__in=snapshot.LIVE)),
        deleting_at=None,
    ).order_by("finished_at", "pk")


_ANY_OVER = prepared.Rows(lambda param: _over(Q(finished_at__lte=param("latest", TIME))).values_list("pk")[:1])


def _begin(ended_before: datetime) -> AuditEntry:
    request = f"finished before {ended_before:%F %T} UTC"
    asking = Asking(audit.snapshot_row, lambda: _ACTOR, "retention", "", request, "delete")
    return audit.begun(asking, kind="Job")


def _delete(job: Job, keep: timedelta, now: datetime) -> bool:
    try:
        actions.delete(job, by=f"the retention of finished jobs, {keep.days} days", now=now)
    except Conflict:
        return False
    return True
