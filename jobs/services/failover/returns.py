"""Copies that a job left behind on a cluster that was lost, and that run on now that it is back: the attempt goes on there.

A job that waits for another place keeps such a copy until its replacement has one (invariant I5). Adoption happens on the
member's own report, when the cluster is back, and at the last moment before the scheduler places the job anew: which of the
three comes first does not matter. Below the scheduler, which asks here.
"""

from collections.abc import Iterable
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from fleet.db import isolation, prepared
from fleet.models import Cluster
from jobs.core.failover.rules import Outcome, leaves_cluster_at
from jobs.core.life.jobs import JobEvent
from jobs.core.life.works import WorkEvent
from jobs.events import announce_jobs, record_event
from jobs.models import Attempt, Job, Work
from jobs.services.lifecycle import transitions, works
from jobs.snapshot import spec_of, taints_of

_UNSENT = (*Job.WAITING, Job.State.SUSPENDED, Job.State.PLACED, Job.State.RECLAIMING)
"""States of a job whose latest attempt need not have been sent."""


def leaves_at(job: Job, cluster: Cluster) -> datetime | None:
    """When the job has to leave the cluster because of its taints; None: it may stay.

    A policy that says how long an unhealthy job is tolerated means a job on a lost cluster too.
    """
    spec = spec_of(job)
    tolerated_s = spec.application_toleration_s
    default_s = settings.CONVOY_FAILOVER.cluster_toleration_s if tolerated_s is None else tolerated_s
    return leaves_cluster_at(taints_of(cluster.taints), spec.tolerations, default_s)


def may_stay(job: Job, cluster: Cluster, now: datetime) -> bool:
    at = leaves_at(job, cluster)
    return at is None or at > now


def adopt(now: datetime, pks: Iterable[int] | None = None) -> list[Job]:
    """Those of the jobs, or of all, whose attempt goes on where they left it, because its cluster is well again."""
    if pks is None and not _ANY_LEFT.values():
        return []
    rows = _left_behind()
    if pks is not None:
        rows = rows.filter(pk__in=list(pks))
    adopted = isolation.each("returns.adopt", rows, lambda job: job if _goes_on(job, now) else None, now)
    return [job for job in adopted if job is not None]


@transaction.atomic
def _goes_on(job: Job, now: datetime) -> bool:
    if not come_back(job, now):
        return False
    announce_jobs([job], now)
    return True


def _left_behind() -> QuerySet[Job]:
    same_attempt = {"job_uid": OuterRef("uid"), "attempt": OuterRef("attempt")}
    applied = Work.objects.filter(**same_attempt, state=Work.State.APPLIED, cluster__state=Cluster.State.READY)
    lost = Attempt.objects.filter(job=OuterRef("pk"), number=OuterRef("attempt"), outcome=Outcome.LOST)
    waiting = Job.objects.filter(state__in=Job.WAITING, attempt__gt=0, shares=[], suspended=False)
    return (
        waiting.filter(Exists(applied), Exists(lost), deleting_at__isnull=True).select_related("policy").order_by("pk")
    )


_ANY_LEFT = prepared.Rows(lambda _: _left_behind().order_by().values_list("pk")[:1])


def copy_of(job: Job, attempt: int, *, succeeded: bool = False) -> Work | None:
    """The work of an attempt's copy that may go on, with its cluster; of one that has succeeded, in whatever state it is.

    A copy's last report may come after it was removed.
    """
    works_of_attempt = Work.objects.filter(job_uid=job.uid, attempt=attempt)
    sent = works_of_attempt if succeeded else works_of_attempt.filter(state=Work.State.APPLIED)
    return sent.select_related("cluster").defer("cluster__access").first()


@transaction.atomic
def come_back(job: Job, now: datetime, *, succeeded: bool = False) -> bool:
    """The attempt a job has left goes on where its copy is; False when it was not left for its cluster's sake.

    Neither does it when the cluster is still to be left, as a drained one is. A copy that has succeeded is believed whatever
    it was left for, also when the job was suspended a moment before: it would run a second time once it is resumed.
    """
    work = copy_of(job, job.attempt, succeeded=succeeded)
    if work is None or not (succeeded or may_stay(job, work.cluster, now)):
        return False
    current = Attempt.objects.filter(job=job, number=job.attempt)
    attempt = (current if succeeded else current.filter(ended_at__isnull=False, outcome=Outcome.LOST)).first()
    if attempt is None:
        return False
    left = Job.objects.filter(pk=job.pk, attempt=job.attempt, deleting_at__isnull=True)
    left = left if succeeded else left.filter(state__in=Job.WAITING, suspended=False)
    event = JobEvent.RETURNED_RUNNING if attempt.started_at else JobEvent.RETURNED
    if not transitions.move_jobs(left, event, cluster_id=work.cluster_id, reason=None):
        return False
    Attempt.objects.filter(pk=attempt.pk).update(ended_at=None, outcome="", message="", cause="", evidence=None)
    job.refresh_from_db()
    if succeeded:
        # There is nothing left to stop; the copy stays for its logs.
        transitions.move_works(Work.objects.filter(pk=work.pk), WorkEvent.SUCCEEDED, **works.UNCLAIMED)
        return True
    record_event(job, "StaysOnCluster", f"{work.cluster.name} is back before another place was found", now)
    return True


@transaction.atomic
def retract_later(job: Job, attempt: int, cluster_id: int, now: datetime) -> bool:
    """Takes back the placements after ``attempt``, which has succeeded; False when one of them was sent: then that one counts.

    A resumed job may be placed anew before the success of the copy it had left is known. The job's row is locked.
    """
    later = Work.objects.filter(job_uid=job.uid, attempt__gt=attempt).order_by("pk").select_for_update(no_key=True)
    unsent = (Work.State.PENDING, Work.State.GONE)
    numbers = list(later.values_list("attempt", "state"))
    if job.state not in _UNSENT or any(state not in unsent for _, state in numbers):
        return False
    Job.objects.filter(pk=job.pk).update(cluster_id=cluster_id)
    transitions.move_works(
        Work.objects.filter(job_uid=job.uid, attempt__gt=attempt), WorkEvent.DROPPED, **works.UNCLAIMED
    )
    for number, _ in numbers:
        works.release_hold(job.uid, number, now)
    return True
