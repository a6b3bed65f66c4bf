"""Carries out preemptions: evicts running jobs, with time to save their work, and requeues each at its old position.

An eviction goes through these steps: ordered -> the member's copy is suspended by its own switch, so that the pods may write a
checkpoint -> the pods are gone, or the grace period is over -> the copy is removed -> the job is queued again and its quota is
free. Each step is decided, written, and then acted on by the works. `advance` derives the next step from the rows alone, so
the sweep repairs what a crash left. A job is never preempted twice: its state is checked again under the row lock. Callers of
`advance` request a cycle when it returns more than 0 (`jobs.services.scheduling.loop.advance_evictions`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db import transaction
from structlog import get_logger

from fleet.changes import events
from fleet.db import clock, isolation, prepared
from fleet.models import Cluster, Pod
from jobs import metrics, snapshot
from jobs.core.admission.plans import Waits
from jobs.core.admission.snapshot import Quota
from jobs.core.division import shares as parts
from jobs.core.failover.lifecycle import grace_s
from jobs.core.failover.rules import Outcome
from jobs.core.gang.types import AdmittedGang
from jobs.core.life.jobs import JobEvent
from jobs.core.preemption.cost import Loss
from jobs.core.preemption.planner import Eviction, PreemptionPlan
from jobs.core.reasons import Code, QuotaVerdict, Reason
from jobs.events import announce_jobs, job_event, record_event
from jobs.kinds import registry
from jobs.models import Job, Work
from jobs.services.failover import shares
from jobs.services.lifecycle import transitions, works
from jobs.services.scheduling.decisions import shrinking
from jobs.services.scheduling.demand import demand_provider
from jobs.snapshot_rows import charges_of
from quotas.core.queues.job_names import listed_to, shown_to
from quotas.core.reclaiming import excess
from quotas.core.reclaiming.excess import Cause, Surplus
from quotas.models import QuotaTree

log = get_logger(__name__)

State = Work.State


@dataclass(frozen=True, slots=True)
class Evicting:
    """A job that makes room, and when its grace period ends."""

    name: str
    until: datetime | None
    deferred: bool = False
    """It runs on until then, within the min-runtime of its queue."""
    pods: int = 0
    """It gives back so many pods and runs on; 0: it is stopped whole."""
    lends: bool = False
    """The preemptor was not promised what it frees, and borrows it."""


def eviction_costs() -> dict[int, Loss]:
    """What stopping each running job would cost, by job."""
    return demand_provider.losses_of(snapshot.running_jobs())


@dataclass(frozen=True, slots=True)
class Ordered:
    """What is written of the evictions of a plan, before and after its placements."""

    evictions: Sequence[Eviction] = ()
    """Of gangs that are stopped whole."""
    shrinks: Sequence[Eviction] = ()
    """Of pods that gangs give back. Their jobs are changed already, and not saved."""
    jobs: Mapping[int, Job] = field(default_factory=dict)
    lines: Sequence[events.Line] = ()


def shrink_targets(preemption_plan: PreemptionPlan, now: datetime) -> Ordered:
    """Chooses what is ordered, and takes the pods that gangs give back: before anything else of the plan is journalled.

    All targets of a preemptor, whose rows are locked, or none if one of them is not as it was planned for.
    """
    if not preemption_plan.evictions:
        return Ordered()
    jobs = snapshot.running_jobs().in_bulk([taken.target.job_id for taken in preemption_plan.evictions])
    preemptors = snapshot.waiting_jobs().filter(pk__in=[taken.preemptor.job_id for taken in preemption_plan.evictions])
    waiting, evicted = set(preemptors.values_list("pk", flat=True)), []
    for job, group in groupby(preemption_plan.evictions, key=lambda taken: taken.preemptor.job_id):
        targets = list(group)
        if job in waiting and all(_is_unchanged(jobs.get(taken.target.job_id), taken) for taken in targets):
            evicted += targets
    whole = [taken for taken in evicted if not taken.target.fewer]
    stopped = {taken.target.job_id for taken in whole}
    shrinks = [taken for taken in evicted if taken.target.fewer and taken.target.job_id not in stopped]
    return Ordered(whole, shrinks, jobs, shrinking.shrink(shrinks, jobs, now))


def order_evictions(preemption_plan: PreemptionPlan, ordered: Ordered, now: datetime) -> dict[int, list[Evicting]]:
    """Evicts what is stopped whole, and saves what became smaller; returns, by preemptor, what makes room for it."""
    waits = {
        job: [Evicting(gang.name, gang.until, gang.deferred, _pods(gang), gang.lends) for gang in evicted_gangs]
        for job, evicted_gangs in preemption_plan.awaiting.items()
    }
    jobs = ordered.jobs
    if smaller := list({taken.target.job_id: jobs[taken.target.job_id] for taken in ordered.shrinks}.values()):
        announce_jobs(smaller, now, shrinking.COLUMNS, ordered.lines)
    until = _evict([(jobs[taken.target.job_id], _reclaim_of(taken)) for taken in ordered.evictions], now)
    until |= {job.pk: shrinking.until(job) for job in smaller}
    for taken in (*ordered.evictions, *ordered.shrinks):
        pods, lends = _pods(taken.target), taken.victim.is_for_borrowing
        evicting = Evicting(taken.target.name, until[taken.target.job_id], pods=pods, lends=lends)
        waits.setdefault(taken.preemptor.job_id, []).append(evicting)
    return waits


def _pods(gang: AdmittedGang) -> int:
    return sum(count for _, count in gang.fewer)


def _is_unchanged(job: Job | None, taken: Eviction) -> bool:
    if job is None or job.attempt != taken.target.attempt:
        return False
    return not taken.target.fewer or shrinking.is_unchanged(job, taken)


def _reclaim_of(taken: Eviction) -> dict[str, Any]:
    """The stored form (`Job.reclaim`): for which job the target makes room, where that one goes, and why."""
    preemptor = taken.preemptor
    shown = shown_to(preemptor.name, taken.target.name)
    return {
        "job": preemptor.job_id,
        "by": preemptor.name,
        "to": taken.goes_to,
        "cause": taken.victim.cause.value,
        "path": taken.victim.path,
        "message": f"{shown} of {preemptor.leaf} {taken.victim.right}: {taken.victim.message}",
    }


def evict_stopped(now: datetime) -> int:
    """Evicts every job that runs in a stopped queue; returns how many evictions it began."""
    evicted = 0
    for leaf, closed in snapshot.stopped_leaves().items():
        why = closed.spent["message"] if closed.spent else f"queue {closed.path} ({closed.name}) is stopped"
        reclaim = {"job": 0, "by": f"queue {closed.path}", "to": "", "cause": "Stopped", "path": closed.path}
        while count := _evict_some(leaf, {**reclaim, "message": why}, now):
            evicted += count
    return evicted


def evict_excess(quota: Quota, gangs: Iterable[AdmittedGang], now: datetime) -> int:
    """Evicts jobs of nodes that are above their max and take back; returns how many evictions it began."""
    with quota.ledger.released([gang.charge for gang in gangs]):
        is_above = excess.takes_back(quota.ledger)
    return _evict_surplus(quota, now) if is_above else 0


@transaction.atomic
def _evict_surplus(quota: Quota, now: datetime) -> int:
    """Chooses by fresh rows. An edit at the same moment is waited for, and then nothing is evicted by the former tree."""
    row = QuotaTree.objects.select_for_update(no_key=True).only("resource_version").first()
    if row is None or row.resource_version != quota.version:
        return 0
    tree = quota.ledger.tree
    staying = snapshot.charged_jobs().exclude(state=Job.State.RECLAIMING)
    charges = staying.filter(deleting_at__isnull=True).values_list("pk", "leaf", "charge", "preemptible")
    ledger = snapshot.ledger_of(tree, charges_of(charges))
    surplus = {
        int(one.job.key): one for one in excess.plan_evictions(ledger, demand_provider.load_evictable(tree, now))
    }
    rows = snapshot.running_jobs().filter(pk__in=surplus, state__in=Job.ON_MEMBER)
    jobs = rows.order_by("pk").select_for_update(no_key=True)
    return len(_evict([(job, _surplus_reclaim(surplus[job.pk])) for job in jobs], now))


def _surplus_reclaim(surplus: Surplus) -> dict[str, Any]:
    path = surplus.overrun.path
    about = {"job": 0, "by": f"quota {path}", "to": "", "cause": Cause.ABOVE_MAX.value, "path": path}
    return {**about, "message": f"{surplus.overrun.message}, and takes back what is above it"}


def evict_reclaimed(job: Job, message: str, now: datetime) -> None:
    """Evicts a locked job whose pods were asked to stop in its member, and have stopped: it is queued again where it stood."""
    about = {"job": 0, "by": "its cluster", "to": "", "cause": "NodeReclaimed", "path": job.leaf}
    _evict([(job, {**about, "message": message})], now)


def evict_by_hand(job: Job, by: str, now: datetime) -> None:
    """Evicts a locked job because a person said so: it is queued again where it stood."""
    about = {"job": 0, "by": by, "to": "", "cause": "ByHand", "path": job.leaf}
    _evict([(job, {**about, "message": f"preempted by {by}"})], now)


def evict_without_leaf(now: datetime) -> int:
    """Evicts the jobs that still have the charge of a leaf that was removed; returns how many evictions it began."""
    message = "its quota was removed from the tree, and takes back what it had"
    reclaim = {
        "job": 0,
        "by": "the quota tree",
        "to": "",
        "cause": Cause.WITHOUT_LEAF.value,
        "path": "",
        "message": message,
    }
    evicted = 0
    while count := _evict_some("", reclaim, now):
        evicted += count
    return evicted


@transaction.atomic
def _evict_some(leaf: str, reclaim: dict[str, Any], now: datetime) -> int:
    running = snapshot.charged_jobs().filter(leaf=leaf, state__in=Job.ON_MEMBER, deleting_at__isnull=True)
    jobs = running.order_by("pk").select_for_update(no_key=True)[:_BATCH]
    return len(_evict([(job, reclaim) for job in jobs], now))


_BATCH = 500
_EVICTED = ("state", "reason", "reclaim", "unhealthy_since")


def _evict(evictions: Sequence[tuple[Job, dict[str, Any]]], now: datetime) -> dict[int, datetime]:
    """Begins the eviction of locked jobs; returns by job when its grace period ends."""
    if not evictions:
        return {}
    until = {job.pk: _begin_eviction(job, reclaim, now) for job, reclaim in evictions}
    jobs = [job for job, _ in evictions]
    works.suspend_copies(jobs, now)
    lines = [
        job_event(job, "Reclaimed", f"Leaves attempt {job.attempt}: {(job.reason or {})['message']}", warning=True)
        for job in jobs
    ]
    events.record_all(lines, now)
    announce_jobs(jobs, now, _EVICTED)
    transaction.on_commit(partial(_count_preempted, evictions), robust=True)
    return until


def _count_preempted(evictions: Sequence[tuple[Job, dict[str, Any]]]) -> None:
    for job, reclaim in evictions:
        metrics.PREEMPTED.labels(job.leaf, reclaim["cause"]).inc()
        metrics.EVICTED.labels(job.leaf, "Preempted").inc()
        log.info("preempted", job=str(job), attempt=job.attempt, preemptor=reclaim["by"], reason=reclaim["cause"])


def _begin_eviction(job: Job, reclaim: dict[str, Any], now: datetime) -> datetime:
    """Ends the attempt, whose pods keep running until they have saved their work; returns the end of the grace period."""
    grace = grace_s(job.manifest, registry.kind_of(job.api_version, job.kind).templates(job.manifest))
    until = now + timedelta(seconds=grace)
    reason = Reason(Code.RECLAIMED, f"{reclaim['message']}; it has until {until:%H:%M:%S} UTC to save its work")
    transitions.enter(job, JobEvent.EVICTED)
    job.reason, job.unhealthy_since = reason.as_json(), None
    job.reclaim = {**reclaim, "at": now.isoformat(), "until": until.isoformat()}
    works.end_attempt(job, Outcome.RECLAIMED, reclaim["message"], now)
    events.enqueue("jobs.reclaim", str(job.uid), countdown_s=grace + 0.05)
    return until


def advance(now: datetime, uids: Iterable[UUID] | None = None) -> int:
    """Takes all evictions, or those of these jobs, one step further; returns how many have ended with the job requeued."""
    rows = _LEAVING.objects() if uids is None else snapshot.leaving_jobs().filter(uid__in=list(uids))
    return sum(isolation.each("preemption.advance", rows, lambda job: _advance(job, now), now))


_LEAVING = prepared.Rows(lambda _: snapshot.leaving_jobs())


@transaction.atomic
def _advance(job: Job, now: datetime) -> bool:
    if datetime.fromisoformat((job.reclaim or {}).get("at") or now.isoformat()) > now + clock.STEP:
        _begin_grace_anew(job, now)
    late = datetime.fromisoformat((job.reclaim or {})["until"]) <= now
    remaining = Work.objects.filter(job_uid=job.uid).exclude(state__in=[State.GONE, State.KEPT])
    if late:
        # A copy on a cluster that cannot be reached counts as stopped; it is removed when the cluster is back.
        remaining = remaining.filter(cluster__state=Cluster.State.READY)
    if not remaining.exists():
        return _queue_again(job, now)
    if late or _pods_are_gone(job):
        works.withdraw(job, now)
    return False


def _begin_grace_anew(job: Job, now: datetime) -> None:
    """For an eviction that was ordered later than now, before the clock was set back: else its copy would run until then."""
    reclaim = job.reclaim or {}
    grace = datetime.fromisoformat(reclaim["until"]) - datetime.fromisoformat(reclaim["at"])
    renewed = {**reclaim, "at": now.isoformat(), "until": (now + grace).isoformat()}
    if snapshot.leaving_jobs().filter(pk=job.pk, reclaim=reclaim).update(reclaim=renewed):
        job.reclaim = renewed
        announce_jobs([job], now)


def _pods_are_gone(job: Job) -> bool:
    stopping = Work.objects.filter(job_uid=job.uid).exclude(state__in=[State.GONE, State.KEPT, State.SUSPENDED])
    live = Pod.objects.filter(
        job_uid=job.uid, attempt__in=parts.counting(job.shares, job.attempt), phase__in=snapshot.LIVE
    )
    return not stopping.exists() and not live.exists()


def _queue_again(job: Job, now: datetime) -> bool:
    """Requeues the job at its old position: ``queued_at`` stays. The freed room is nominated from its ``until`` on."""
    reclaim = job.reclaim or {}
    message = f"{reclaim['message']}; queued again where it stood"
    ended = {**reclaim, "until": max(datetime.fromisoformat(reclaim["until"]), now).isoformat()}
    reason = Reason(Code.RECLAIMED, message).as_json()
    evicting = snapshot.leaving_jobs().filter(pk=job.pk)
    if not transitions.move_jobs(evicting, JobEvent.MADE_ROOM, charge=None, cluster=None, reason=reason, reclaim=ended):
        return False
    job.refresh_from_db()
    shares.stop(job, now)
    record_event(job, "QueuedAgain", message, now)
    announce_jobs([job], now)
    return True


def waits_for(waits: Waits, evicting: Mapping[int, Sequence[Evicting]]) -> Waits:
    """The reason of a preemptor has the jobs being evicted for it and their latest end; that of other gangs stays."""
    targets = evicting.get(waits.gang.job_id)
    if not targets:
        return waits
    until = max((target.until for target in targets if target.until), default=None)
    names = [target.name for target in targets]
    deadline = f", at the latest at {until:%H:%M:%S} UTC" if until else ""
    by = listed_to(dict.fromkeys(names), waits.gang.name)
    if all(target.pods for target in targets):
        pods = sum(target.pods for target in targets)
        by = f"{pods} pod{'s' if pods > 1 else ''} of {by}"
    is_promised = not any(target.lends for target in targets)
    what = (
        f"give back what {waits.gang.leaf} was promised"
        if is_promised
        else f"leave {waits.gang.leaf} what it may borrow"
    )
    message = f"waits for {by} to {what}{deadline}"
    quota = waits.reason.quota
    facts = {**(quota.facts if quota else {}), "from_jobs": names, "until": until.isoformat() if until else None}
    if until and any(target.deferred for target in targets):
        listed, ends = listed_to(names, waits.gang.name), f"{until:%Y-%m-%d %H:%M:%S} UTC"
        message = f"{listed} use what {waits.gang.leaf} was promised, protected by min-runtime until {ends}"
        facts["protected_until"] = until.isoformat()
    path = quota.path if quota else waits.gang.leaf
    verdict = QuotaVerdict(Code.WAITING_FOR_RECLAIM, path, message, facts)
    return Waits(waits.gang, Reason(Code.WAITING_FOR_RECLAIM, message, waits.reason.clusters, verdict))
