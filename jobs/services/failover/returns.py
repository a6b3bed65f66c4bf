"""Resumes attempts on recovered clusters: a job that left a lost cluster goes on there if its old copy still runs.

A waiting job keeps its old copy until the replacement is placed (invariant I5). An attempt is resumed when the member reports
the copy, when the cluster recovers, or right before the scheduler would place the job again, whichever comes first. The
scheduler calls this module, so it may not import the scheduler.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from fleet.core import tags
from fleet.core.members import health
from fleet.db import isolation, prepared
from fleet.models import Cluster
from jobs.core.failover.rules import Outcome, leaves_cluster_at
from jobs.core.life.jobs import JobEvent
from jobs.core.life.works import WorkEvent
from jobs.core.policies.propagation import PolicySpec
from jobs.core.policies.unreachable import Unreachable
from jobs.events import announce_jobs, record_event
from jobs.models import Attempt, Job, Work
from jobs.services.lifecycle import transitions, works
from jobs.services.lifecycle.copies.fences import Fence
from jobs.snapshot import spec_of, taints_of

LEFT_THE_CLUSTER = (Outcome.LOST, Outcome.DRAINED)
"""How attempts end whose job leaves a cluster that is lost, tainted or drained. Their copies may still run."""
_OF_HEALTH = (health.NOT_READY_TAINT, health.UNREACHABLE_TAINT)
_UNSENT = (*Job.WAITING, Job.State.SUSPENDED, Job.State.PLACED, Job.State.RECLAIMING)
"""States of a job whose latest attempt need not have been sent."""


def leaves_at(job: Job, cluster: Cluster, fence: Fence | None = None) -> datetime | None:
    """When the job has to leave the cluster because of its taints. None: it may stay.

    The toleration of the policy's application failover also applies to a lost cluster. A policy may say that its jobs wait for
    a cluster that does not answer, for good or until the agent there must have stopped the copy; to drain that cluster says
    that its copies run no more. Of what was never sent there no copy runs. ``fence`` is that of the cluster, where it was read
    already.
    """
    spec = spec_of(job)
    tolerated = _tolerated_until(spec, cluster.taints)
    if tolerated is None or spec.unreachable is Unreachable.REPLACE or not _is_cut_off(cluster):
        return tolerated
    fence = fence or Fence(cluster, [job.uid])
    if not fence.may_have_copy(job):
        return tolerated
    over = fence.over_at(job, spec)
    return max(tolerated, over) if over is not None else None


def waits_for(job: Job, cluster: Cluster, now: datetime, fence: Fence | None = None) -> bool:
    """Whether the job stays only because its policy waits for the cluster."""
    if not _is_cut_off(cluster):
        return False
    tolerated = _tolerated_until(spec_of(job), cluster.taints)
    return tolerated is not None and tolerated <= now and may_stay(job, cluster, now, fence)


def _is_cut_off(cluster: Cluster) -> bool:
    return cluster.state == Cluster.State.UNKNOWN and not cluster.drained


def _tolerated_until(spec: PolicySpec, taints: Iterable[Mapping[str, Any]]) -> datetime | None:
    tolerated_s = spec.application_toleration_s
    default_s = settings.CONVOY_FAILOVER.cluster_toleration_s if tolerated_s is None else tolerated_s
    return leaves_cluster_at(taints_of(taints), spec.tolerations, default_s)


def may_stay(job: Job, cluster: Cluster, now: datetime, fence: Fence | None = None) -> bool:
    at = leaves_at(job, cluster, fence)
    return at is None or at > now


def leaves_for_silence(job: Job, cluster: Cluster, now: datetime) -> bool:
    """Whether the job would stay if the cluster were well: it is neither drained nor tainted by a person."""
    at = _tolerated_until(spec_of(job), [taint for taint in cluster.taints if taint.get("key") not in _OF_HEALTH])
    return cluster.state != Cluster.State.READY and (at is None or at > now)


def leaves_for_drain(job: Job, cluster: Cluster, now: datetime) -> bool:
    """Whether a person's drain alone makes the job leave a cluster that is well: no failure of the cluster."""
    at = _tolerated_until(spec_of(job), [taint for taint in cluster.taints if tags.is_drain(taint)])
    return cluster.state == Cluster.State.READY and at is not None and at <= now


def adopt(now: datetime, pks: Iterable[int] | None = None) -> list[Job]:
    """Resumes the former attempts of waiting jobs whose cluster has recovered, and returns these jobs.

    ``pks`` limits this to the given jobs.
    """
    if pks is None and not _ANY_LEFT.values():
        return []
    rows = _left_behind()
    if pks is not None:
        rows = rows.filter(pk__in=list(pks))
    adopted = isolation.each("returns.adopt", rows, lambda job: job if _adopt(job, now) else None, now)
    return [job for job in adopted if job is not None]


@transaction.atomic
def _adopt(job: Job, now: datetime) -> bool:
    if not come_back(job, now):
        return False
    announce_jobs([job], now)
    return True


def _left_behind() -> QuerySet[Job]:
    same_attempt = {"job_uid": OuterRef("uid"), "attempt": OuterRef("attempt")}
    # A fenced copy was left when its agent must have stopped it: it is resumed only if its member reports that it runs.
    sent = Work.objects.filter(**same_attempt, state=Work.State.APPLIED, fenced=False)
    applied = sent.filter(cluster__state=Cluster.State.READY)
    lost = Attempt.objects.filter(job=OuterRef("pk"), number=OuterRef("attempt"), outcome__in=LEFT_THE_CLUSTER)
    waiting = Job.objects.filter(state__in=Job.WAITING, attempt__gt=0, shares=[], suspended=False)
    return (
        waiting.filter(Exists(applied), Exists(lost), deleting_at__isnull=True).select_related("policy").order_by("pk")
    )


_ANY_LEFT = prepared.Rows(lambda _: _left_behind().order_by().values_list("pk")[:1])


def copy_of(job: Job, attempt: int, *, succeeded: bool = False) -> Work | None:
    """The work of the attempt, with its cluster, if its copy may be resumed.

    With ``succeeded`` the work may be in any state, because the last report of a copy may arrive after its removal.
    """
    works_of_attempt = Work.objects.filter(job_uid=job.uid, attempt=attempt)
    sent = works_of_attempt if succeeded else works_of_attempt.filter(state=Work.State.APPLIED, stopped_at=None)
    return sent.select_related("cluster").defer("cluster__access").first()


@transaction.atomic
def come_back(job: Job, now: datetime, *, succeeded: bool = False) -> bool:
    """Makes the attempt that the job has left current again.

    Returns False if the job did not leave because its cluster was lost or drained, or if it must still leave that cluster.
    With ``succeeded``, the reason for leaving does not matter, even if the job was suspended meanwhile:
    otherwise the completed job would run a second time.
    """
    work = copy_of(job, job.attempt, succeeded=succeeded)
    if work is None or not (succeeded or may_stay(job, work.cluster, now)):
        return False
    current = Attempt.objects.filter(job=job, number=job.attempt)
    attempt = (current if succeeded else current.filter(ended_at__isnull=False, outcome__in=LEFT_THE_CLUSTER)).first()
    if attempt is None:
        return False
    rows = Job.objects.filter(pk=job.pk, attempt=job.attempt, deleting_at__isnull=True)
    rows = rows if succeeded else rows.filter(state__in=Job.WAITING, suspended=False)
    event = JobEvent.RETURNED_RUNNING if attempt.started_at else JobEvent.RETURNED
    if not transitions.move_jobs(rows, event, cluster_id=work.cluster_id, reason=None):
        return False
    times = {"returned_at": now} if not succeeded and attempt.left_at == attempt.ended_at else {}
    Attempt.objects.filter(pk=attempt.pk).update(ended_at=None, outcome="", message="", **times, **Attempt.NO_FAILURE)
    job.refresh_from_db()
    if succeeded:
        # Nothing is left to stop. The copy is kept so that its logs can be read.
        transitions.move_works(Work.objects.filter(pk=work.pk), WorkEvent.SUCCEEDED, **works.UNCLAIMED)
        return True
    record_event(job, "StaysOnCluster", f"{work.cluster.name} recovered before the job was placed elsewhere", now)
    return True


@transaction.atomic
def retract_later(job: Job, attempt: int, cluster_id: int, now: datetime) -> bool:
    """Cancels the placements after ``attempt``, which has succeeded. Returns False if a later attempt was sent: then it counts.

    A job that was resumed may be placed again before the success of its earlier copy is reported. The job's row is locked.
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
