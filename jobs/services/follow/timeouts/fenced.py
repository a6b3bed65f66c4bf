"""What follows when the agent in a member has stopped copies, because the fleet was silent there: their jobs are placed anew.

`note` is called with each report of copies and writes rows only. `move` decides afterwards, one transaction for each job: by a
task as a hint, and in the sweep. Nothing resumes such a copy: the job gets another attempt, there or elsewhere.
"""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from fleet.changes import events
from fleet.core.members import fence
from fleet.db import isolation, prepared
from jobs.core.division import shares
from jobs.core.failover.rules import Outcome, PurgeMode
from jobs.core.reasons import Code, Reason
from jobs.kinds.base import Manifest
from jobs.models import Job, Work
from jobs.services.failover import division, failover
from jobs.services.lifecycle import works
from jobs.services.lifecycle.locks import lock_jobs

Key = tuple[UUID, int]


def note(cluster_id: int, copies: Iterable[tuple[Key, Manifest]], now: datetime) -> None:
    """Writes which of the reported copies were stopped; of those that no agent stops nothing is believed."""
    for (uid, attempt), copy in copies:
        if fence.STOPPED not in ((copy.get("metadata") or {}).get("annotations") or {}):
            continue
        rows = Work.objects.filter(job_uid=uid, attempt=attempt, cluster_id=cluster_id, state=Work.State.APPLIED)
        if rows.filter(fenced=True, stopped_at=None).update(stopped_at=now):
            events.enqueue("jobs.check_health")


def move(now: datetime) -> int:
    """Makes the jobs of all stopped copies leave; returns how many."""
    return sum(isolation.each("fenced.move", _STOPPED.objects(), lambda work: _move(work, now), now))


def _stopped() -> QuerySet[Work]:
    job = Job.objects.filter(uid=OuterRef("job_uid"), deleting_at__isnull=True).exclude(state__in=Job.FINISHED)
    stopped = Work.objects.filter(Exists(job), Q(stopped_at__isnull=False), state=Work.State.APPLIED)
    return stopped.select_related("cluster").defer("cluster__access")


_STOPPED = prepared.Rows(lambda _: _stopped())


@transaction.atomic
def _move(work: Work, now: datetime) -> bool:
    if not lock_jobs(Job.objects.filter(uid=work.job_uid)):
        return False
    job = Job.objects.get(uid=work.job_uid)
    silence = f"the agent in {work.cluster.name} stopped the copy, because the fleet was silent there"
    reason = Reason(Code.CLUSTER_LOST, silence)
    if work.attempt not in shares.counting(job.shares, job.attempt) or job.state not in (
        *Job.ON_MEMBER,
        Job.State.MOVING,
    ):
        works.withdraw_attempt(job, work.attempt, now)
        return False
    if job.shares:
        left = division.leave(job, work.attempt, Outcome.LOST, reason, now, purge=PurgeMode.DIRECTLY)
    else:
        left = failover.leave(job, Outcome.LOST, reason, now, purge=PurgeMode.DIRECTLY)
    if not left:
        works.withdraw_attempt(job, work.attempt, now)
    return left
