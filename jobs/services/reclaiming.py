"""Carries out a reclaim: somebody leaves its place for a claimant, in its own time, and stands in line again where it stood.

ordered → its copy's own suspend switch, so that the pods may save their work → gone, or out of time → the copy is removed →
queued again, its quota free. Each step is decided, written, and then acted on by the works; `advance` finds the next step
from what is written alone, so the sweep repairs whatever a crash left. Nobody is ordered twice: an order is a conditional
update. Whoever calls here asks for a cycle (`jobs.services.scheduling`), which is above.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db import transaction

from fleet import events
from fleet.models import Cluster, Pod
from jobs import snapshot
from jobs.core import shares as parts
from jobs.core.failover import Outcome
from jobs.core.lifecycle import grace_s
from jobs.core.losses import Loss
from jobs.core.reasons import Code, Reason
from jobs.core.takeback import Takeback, Taken
from jobs.events import announce_jobs, say
from jobs.kinds import registry
from jobs.models import Job, Work
from jobs.services import population, works

State = Work.State


@dataclass(frozen=True, slots=True)
class Leaving:
    """One who makes room, and until when at the latest."""

    name: str
    until: datetime | None


def losses() -> dict[int, Loss]:
    """What stopping anybody who might be stopped would cost, by job."""
    return population.losses_of(snapshot.running_jobs())


def order(takeback: Takeback, now: datetime) -> dict[int, list[Leaving]]:
    """Lets the victims leave; returns who leaves for whom. All of a claimant's are as the planner saw them, or none goes."""
    waits = {job: [Leaving(r.name, r.until) for r in leaving] for job, leaving in takeback.content.items()}
    for job, group in groupby(takeback.taken, key=lambda taken: taken.claimant.job_id):
        with transaction.atomic():
            left = [_take(taken, now) for taken in group]
            found = [each for each in left if each is not None]
            if len(found) < len(left) or not snapshot.waiting_jobs().filter(pk=job).exists():
                transaction.set_rollback(True)
            else:
                waits[job] = found
    return waits


def _take(taken: Taken, now: datetime) -> Leaving | None:
    jobs = snapshot.running_jobs().filter(pk=taken.runner.job_id, attempt=taken.runner.attempt)
    by = taken.claimant
    why = f"{by.name} of {by.leaf} was promised its place: {taken.victim.message}"
    told = {"job": by.job_id, "by": by.name, "to": taken.goes_to, "cause": taken.victim.cause.value}
    until = _order(jobs.first(), {**told, "path": taken.victim.path, "message": why}, now)
    return until and Leaving(taken.runner.name, until)


def take_back_stopped(now: datetime) -> int:
    """Lets everybody leave who runs in a queue that is stopped; returns how many had to be told."""
    told = 0
    for leaf, closed in snapshot.stopped_leaves().items():
        for job in snapshot.charged_jobs().filter(leaf=leaf, state__in=Job.ON_MEMBER, deleting_at__isnull=True):
            why = f"queue {closed.path} ({closed.name}) is stopped"
            order_ = {"job": 0, "by": f"queue {closed.path}", "to": "", "cause": "Stopped", "path": closed.path}
            told += _order(job, {**order_, "message": why}, now) is not None
    return told


@transaction.atomic
def _order(job: Job | None, told: dict[str, Any], now: datetime) -> datetime | None:
    """Until when it has time to leave; None when it stays or has left already."""
    if job is None:
        return None
    grace = grace_s(job.manifest, registry.of(job.api_version, job.kind).templates(job.manifest))
    until = now + timedelta(seconds=grace)
    reason = Reason(Code.RECLAIMED, f"{told['message']}; it has until {until:%H:%M:%S} UTC to save its work")
    standing = Job.objects.filter(pk=job.pk, attempt=job.attempt, state__in=Job.ON_MEMBER, deleting_at__isnull=True)
    if not standing.update(
        state=Job.State.RECLAIMING,
        reason=reason.as_json(),
        reclaim={**told, "at": now.isoformat(), "until": until.isoformat()},
        unhealthy_since=None,
    ):
        return None
    job.refresh_from_db()
    works.end_attempt(job, Outcome.RECLAIMED, told["message"], now)
    works.suspend_copies(job, now)
    say(job, "Reclaimed", f"Leaves attempt {job.attempt}: {reason.message}", now, warning=True)
    announce_jobs([job], now)
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
