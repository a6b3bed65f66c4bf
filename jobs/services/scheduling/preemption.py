"""Carries out a reclaim: somebody leaves its place for a claimant, in its own time, and stands in line again where it stood.

ordered → its copy's own suspend switch, so that the pods may save their work → gone, or out of time → the copy is removed →
queued again, its quota free. Each step is decided, written, and then acted on by the works; `advance` finds the next step
from what is written alone, so the sweep repairs whatever a crash left. Nobody is ordered twice: who is ordered was looked at
under the lock of his row. Whoever calls here asks for a cycle (`jobs.services.scheduling.loop`), which is above.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db import transaction
from structlog import get_logger

from fleet import events
from fleet.models import Cluster, Pod
from jobs import metrics, snapshot
from jobs.core.admission.plans import Waits
from jobs.core.division import shares as parts
from jobs.core.failover.lifecycle import grace_s
from jobs.core.failover.rules import Outcome
from jobs.core.preemption.cost import Loss
from jobs.core.preemption.planner import Takeback, Taken
from jobs.core.reasons import Code, QuotaVerdict, Reason
from jobs.events import announce_jobs, line, say
from jobs.kinds import registry
from jobs.models import Job, Work
from jobs.services.lifecycle import works
from jobs.services.scheduling import demand_provider

log = get_logger(__name__)

State = Work.State


@dataclass(frozen=True, slots=True)
class Leaving:
    """One who makes room, and until when at the latest."""

    name: str
    until: datetime | None


def losses() -> dict[int, Loss]:
    """What stopping anybody who might be stopped would cost, by job."""
    return demand_provider.losses_of(snapshot.running_jobs())


def order(takeback: Takeback, now: datetime) -> dict[int, list[Leaving]]:
    """Lets the victims leave, whose rows are locked; returns who leaves for whom.

    All of a claimant's are as the planner saw them, or none goes.
    """
    waits = {job: [Leaving(r.name, r.until) for r in leaving] for job, leaving in takeback.content.items()}
    if not takeback.taken:
        return waits
    jobs = snapshot.running_jobs().in_bulk([taken.runner.job_id for taken in takeback.taken])
    claimants = snapshot.waiting_jobs().filter(pk__in=[taken.claimant.job_id for taken in takeback.taken])
    waiting, going = set(claimants.values_list("pk", flat=True)), []
    for job, group in groupby(takeback.taken, key=lambda taken: taken.claimant.job_id):
        victims = list(group)
        if job in waiting and all(_stands(jobs.get(taken.runner.job_id), taken) for taken in victims):
            going += victims
    until = _send_off([(jobs[taken.runner.job_id], _told(taken)) for taken in going], now)
    for taken in going:
        waits.setdefault(taken.claimant.job_id, []).append(Leaving(taken.runner.name, until[taken.runner.job_id]))
    return waits


def _stands(job: Job | None, taken: Taken) -> bool:
    return job is not None and job.attempt == taken.runner.attempt


def _told(taken: Taken) -> dict[str, Any]:
    by = taken.claimant
    why = f"{by.name} of {by.leaf} was promised its place: {taken.victim.message}"
    told = {"job": by.job_id, "by": by.name, "to": taken.goes_to, "cause": taken.victim.cause.value}
    return {**told, "path": taken.victim.path, "message": why}


def take_back_stopped(now: datetime) -> int:
    """Lets everybody leave who runs in a queue that is stopped; returns how many had to be told."""
    told = 0
    for leaf, closed in snapshot.stopped_leaves().items():
        why = f"queue {closed.path} ({closed.name}) is stopped"
        order_ = {"job": 0, "by": f"queue {closed.path}", "to": "", "cause": "Stopped", "path": closed.path}
        while found := _stop_some(leaf, {**order_, "message": why}, now):
            told += found
    return told


@transaction.atomic
def _stop_some(leaf: str, told: dict[str, Any], now: datetime) -> int:
    there = snapshot.charged_jobs().filter(leaf=leaf, state__in=Job.ON_MEMBER, deleting_at__isnull=True)
    jobs = there.order_by("pk").select_for_update(no_key=True)[:_AT_ONCE]
    return len(_send_off([(job, told) for job in jobs], now))


_AT_ONCE = 500
_LEFT = ("state", "reason", "reclaim", "unhealthy_since")


def _send_off(going: Sequence[tuple[Job, dict[str, Any]]], now: datetime) -> dict[int, datetime]:
    """Lets these leave, whose rows are locked, for the reasons told; until when each has time, by job."""
    if not going:
        return {}
    until = {job.pk: _give_time(job, told, now) for job, told in going}
    jobs = [job for job, _ in going]
    works.suspend_copies(jobs, now)
    lines = [
        line(job, "Reclaimed", f"Leaves attempt {job.attempt}: {job.reason['message']}", warning=True) for job in jobs
    ]
    events.record_all(lines, now)
    announce_jobs(jobs, now, _LEFT)
    transaction.on_commit(partial(_count_preempted, going), robust=True)
    return until


def _count_preempted(going: Sequence[tuple[Job, dict[str, Any]]]) -> None:
    for job, order_ in going:
        metrics.PREEMPTED.labels(job.leaf, order_["cause"]).inc()
        metrics.EVICTED.labels(job.leaf, "Preempted").inc()
        log.info("preempted", job=str(job), attempt=job.attempt, preemptor=order_["by"], reason=order_["cause"])


def _give_time(job: Job, told: dict[str, Any], now: datetime) -> datetime:
    grace = grace_s(job.manifest, registry.of(job.api_version, job.kind).templates(job.manifest))
    until = now + timedelta(seconds=grace)
    reason = Reason(Code.RECLAIMED, f"{told['message']}; it has until {until:%H:%M:%S} UTC to save its work")
    job.state, job.reason, job.unhealthy_since = Job.State.RECLAIMING, reason.as_json(), None
    job.reclaim = {**told, "at": now.isoformat(), "until": until.isoformat()}
    works.end_attempt(job, Outcome.RECLAIMED, told["message"], now)
    events.enqueue("jobs.reclaim", str(job.uid), countdown_s=grace + 0.05)
    return until


def advance(now: datetime, uids: Iterable[UUID] | None = None) -> int:
    """The next step of everybody who leaves, or of these; how many have left."""
    leaving, left = snapshot.leaving_jobs(), 0
    for job in leaving if uids is None else leaving.filter(uid__in=list(uids)):
        with transaction.atomic():
            left += _advance(job, now)
    return left


def _advance(job: Job, now: datetime) -> bool:
    late = datetime.fromisoformat((job.reclaim or {})["until"]) <= now
    left = Work.objects.filter(job_uid=job.uid).exclude(state__in=[State.GONE, State.KEPT])
    if late:
        # Whoever ran on a cluster that cannot be reached counts as stopped; its copy is removed when the cluster is back.
        left = left.filter(cluster__state=Cluster.State.READY)
    if not left.exists():
        return _queue_again(job, now)
    if late or _pods_are_gone(job):
        works.withdraw(job, now)
    return False


def _pods_are_gone(job: Job) -> bool:
    stopping = Work.objects.filter(job_uid=job.uid).exclude(state__in=[State.GONE, State.KEPT, State.SUSPENDED])
    live = Pod.objects.filter(
        job_uid=job.uid, attempt__in=parts.counting(job.shares, job.attempt), phase__in=snapshot.LIVE
    )
    return not stopping.exists() and not live.exists()


def _queue_again(job: Job, now: datetime) -> bool:
    """In its old place in the line: ``queued_at`` stays. What it gives back is kept for its claimant from now at the least."""
    order_ = job.reclaim or {}
    told = f"{order_['message']}; queued again where it stood"
    kept = {**order_, "until": max(datetime.fromisoformat(order_["until"]), now).isoformat()}
    reason = Reason(Code.RECLAIMED, told).as_json()
    mine = snapshot.leaving_jobs().filter(pk=job.pk)
    if not mine.update(state=Job.State.QUEUED, charge=None, cluster=None, reason=reason, reclaim=kept):
        return False
    job.refresh_from_db()
    say(job, "QueuedAgain", told, now)
    announce_jobs([job], now)
    return True


def waits_for(each: Waits, leaving: Mapping[int, Sequence[Leaving]]) -> Waits:
    """Of a claimant: that room is being made for it, by whom and until when."""
    found = leaving.get(each.gang.job_id)
    if not found:
        return each
    until = max((one.until for one in found if one.until), default=None)
    names = [one.name for one in found]
    time = f", at the latest at {until:%H:%M:%S} UTC" if until else ""
    told = f"waits for {', '.join(names)} to give back what {each.gang.leaf} was promised{time}"
    quota = each.reason.quota
    facts = {**(quota.facts if quota else {}), "from_jobs": names, "until": until.isoformat() if until else None}
    path = quota.path if quota else each.gang.leaf
    verdict = QuotaVerdict(Code.WAITING_FOR_RECLAIM, path, told, facts)
    return Waits(each.gang, Reason(Code.WAITING_FOR_RECLAIM, told, each.reason.clusters, verdict))
