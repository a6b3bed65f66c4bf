"""Loads the running jobs that are to grow, and writes the growths that a cycle decided: `jobs.core.scheduling.growth` decides.

A growth is one transaction under the scheduler's lease, apart from that of the plan: size, charge, hold, and the order to
the member change together. A job that has changed since it was read is left out, and looked at again in the next cycle.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

from django.db import transaction
from django.db.models import Count, F, QuerySet

from fleet.changes import events
from fleet.db import clock, isolation
from fleet.models import Hold, Pod
from fleet.services.operations import clock_steps
from jobs import metrics, queries, snapshot
from jobs.core.gang.types import CapacityHold
from jobs.core.reasons import Code, Reason
from jobs.core.resizing import bounds, holds, pace
from jobs.core.resizing.bounds import Sizes
from jobs.core.scheduling.growth import Grown, Growth, GrowthPlan, Spare
from jobs.events import announce_jobs, job_event
from jobs.models import Attempt, Job, Work
from jobs.services.lifecycle import cycle_requests, sizes
from jobs.services.scheduling.decisions import apply, lease

T = TypeVar("T")


def load(now: datetime, *, idle: bool) -> list[Growth]:
    """The growths that wait, but those of jobs that cannot be read. Elastic jobs take parts of theirs, with rests between.

    ``idle``: the cycle left nothing else to be done, so that these parts may be such as cost a restart.
    """
    jobs = [job for job in queries.growing_jobs().select_related("cluster").defer("cluster__access") if job.cluster]
    return _of_readable(jobs, partial(_asked_for, now=now, idle=idle))


def _of_readable(jobs: Sequence[Job], load: Callable[[Sequence[Job]], list[T]]) -> list[T]:
    """What is loaded of the jobs, without those of which it cannot be."""
    parts = isolation.apart("scheduler.growth", jobs, load, savepoint=False)
    return [each for part in parts for each in part]


def _asked_for(rows: Sequence[Job], now: datetime, *, idle: bool) -> list[Growth]:
    jobs = {job.pk: job for job in rows if _added(job, sizes.waiting(job))}
    if not jobs:
        return []
    unready = _unready(list(jobs.values()))
    asked = [
        _as_gang(job, sizes.waiting(job), datetime.fromisoformat((job.resize or {})["at"])) for job in jobs.values()
    ]
    gangs = snapshot.gangs_of(asked, {})
    parts = _parts([job for job in jobs.values() if job.elastic and job.uid not in unready], now, idle=idle)
    pairs = [(jobs[gang.job_id], gang) for gang in gangs]
    return [
        replace(
            _growth(job, gang, sizes.waiting(job), unready.get(job.uid)),
            parts=tuple(parts.get(job.pk, ())),
            returns_lost=_returns_lost(job),
            holds_up=pace.holds_up(gang.queued_at, now),
        )
        for job, gang in pairs
    ]


def _returns_lost(job: Job) -> bool:
    return job.elastic and bool((job.resize or {}).get("returns_lost"))


def _parts(jobs: Sequence[Job], now: datetime, *, idle: bool) -> dict[int, list[Growth]]:
    """By job what it may take now of the growth that it asks for, the largest part first."""
    wanted = {job.pk: sizes.waiting(job) for job in jobs if not job.shares and len(sizes.waiting(job)) == 1}
    able = [job for job in jobs if job.pk in wanted]
    restarting = _restarting(able, now)
    held = _held(able)
    others = [job for job in able if job.pk not in restarting and job.shrinks is None and job.uid not in held]
    steps: list[tuple[Job, Sizes]]
    steps = [(job, step) for job in able if job.pk in restarting for step in _smaller(job, wanted[job.pk])]
    if idle:
        steps += _rested([(job, step) for job in others for step in _smaller(job, wanted[job.pk])], now)
    by_pk = {job.pk: job for job in able}
    return {
        pk: [_part_of(growth, wanted[pk], restarts_anyway=pk in restarting, of=by_pk[pk]) for growth in growths]
        for pk, growths in _growths(steps, now).items()
    }


def _part_of(part: Growth, wanted: Sizes, *, restarts_anyway: bool, of: Job) -> Growth:
    return replace(part, part_of=wanted, restarts_anyway=restarts_anyway, returns_lost=_returns_lost(of))


def _smaller(job: Job, wanted: Sizes) -> list[dict[str, int]]:
    ((role, most),) = wanted.items()
    before = sizes.in_force(job)[role]
    return [] if sizes.tied_together(job.roles) else [{role: size} for size in pace.steps(before, most)[1:]]


def load_spares(now: datetime) -> list[Spare]:
    """The elastic jobs that may get what is free, the most urgent first: not those that were resized a moment ago."""
    rows = queries.elastic_jobs().filter(cluster__isnull=False, shares=[]).order_by("-priority", "queued_at", "pk")
    jobs = rows.filter(pk__in=_first_able(rows)).select_related("cluster").defer("cluster__access")
    return _of_readable(list(jobs), partial(_spares_of, now=now))


def _first_able(rows: QuerySet[Job]) -> list[int]:
    """Read in pages: a cursor that is given up before its end would be closed later, amid another transaction."""
    able: list[int] = []
    for start in count(0, _MOST_SPARES):
        page = list(rows.only("size", "roles", "status")[start : start + _MOST_SPARES])
        able += [pk for job in page for pk in _of_readable([job], _able_to_grow)]
        if len(page) < _MOST_SPARES or len(able) >= _MOST_SPARES:
            break
    return able[:_MOST_SPARES]


def _able_to_grow(jobs: Sequence[Job]) -> list[int]:
    return [job.pk for job in jobs if _steps(job)]


def _spares_of(rows: Sequence[Job], now: datetime) -> list[Spare]:
    jobs = {job.pk: job for job in rows}
    busy = _unready(list(jobs.values())).keys() | _held(jobs.values())
    jobs = {pk: job for pk, job in jobs.items() if job.uid not in busy and not snapshot.flavors_charged(job.charge)}
    steps = _rested([(job, wanted) for job in jobs.values() for wanted in _steps(job)], now)
    return [Spare(tuple(growths)) for growths in _growths(steps, now).values()]


def _growths(steps: Sequence[tuple[Job, Sizes]], now: datetime) -> Mapping[int, list[Growth]]:
    """By job the growths to these sizes, in their order."""
    gangs = snapshot.gangs_of([_as_gang(job, wanted, now) for job, wanted in steps], {})
    by_size = {(gang.job_id, frozenset((name, pods) for name, pods, _ in gang.roles)): gang for gang in gangs}
    options: dict[int, list[Growth]] = defaultdict(list)
    for job, wanted in steps:
        if (gang := by_size.get((job.pk, _pods_added(job, wanted)))) is not None:
            options[job.pk].append(_growth(job, gang, wanted, None))
    return options


def _steps(job: Job) -> list[dict[str, int]]:
    """The sizes to try, the largest first: max, then half as many pods more each time, at last one."""
    if sizes.tied_together(job.roles):
        return []
    steps = []
    for role, size in (job.size or {}).items():
        # Of a batch Job no more pods start than there are completions left.
        most = (size["max"] or 0) - _completed(job)
        steps += [{role: wanted} for wanted in pace.steps(size["replicas"], most)]
    return steps


def _completed(job: Job) -> int:
    """By the status that its member reports, which may say anything."""
    count = job.status.get("succeeded") if isinstance(job.status, dict) else None
    return max(count, 0) if isinstance(count, int) and not isinstance(count, bool) else 0


def _pods_added(job: Job, wanted: Sizes) -> frozenset[tuple[str, int]]:
    return frozenset((role["name"], role["replicas"]) for role in _added(job, wanted))


def _held(jobs: Iterable[Job]) -> set[UUID]:
    """The jobs with pods that are still to come."""
    held = Hold.objects.filter(job_uid__in=[job.uid for job in jobs], released_at=None)
    return set(held.values_list("job_uid", flat=True))


def _restarting(jobs: Iterable[Job], now: datetime) -> set[int]:
    """Those that a reclaim restarts at this moment, so that more pods cost no restart of their own."""
    by_pk = {job.pk: job for job in jobs if job.resize}
    return {
        pk
        for (pk, number), attempt in _open_attempts(by_pk).items()
        if (job := by_pk[pk]).attempt == number and job.resize and _restarts_anyway(job.resize["at"], attempt, now)
    }


def _restarts_anyway(asked_at: str, attempt: Attempt, now: datetime) -> bool:
    changed = changed_at(attempt)
    is_of_this_clock = changed <= now + clock.STEP
    return is_of_this_clock and pace.restarts_anyway(
        datetime.fromisoformat(asked_at), changed, restart_cost(attempt), now
    )


def _rested(steps: Sequence[tuple[Job, Sizes]], now: datetime) -> list[tuple[Job, Sizes]]:
    """Those that are worth a restart of the job already."""
    by_job = _open_attempts(job.pk for job, _ in steps)
    return [
        (job, wanted)
        for job, wanted in steps
        if (attempt := by_job.get((job.pk, job.attempt))) is None or _is_rested(job, attempt, wanted, now)
    ]


def _open_attempts(jobs: Iterable[int]) -> dict[tuple[int, int], Attempt]:
    attempts = Attempt.objects.filter(job__in=set(jobs), ended_at=None)
    return {(attempt.job_id, attempt.number): attempt for attempt in attempts}


def _is_rested(job: Job, attempt: Attempt, wanted: Sizes, now: datetime) -> bool:
    changed, cost, before = changed_at(attempt), restart_cost(attempt), sizes.in_force(job)
    if changed > now + clock.STEP:
        return True  # from before the clock was set back: how long ago it was is not known
    return all(now >= pace.grows_from(changed, cost, before[role], size) for role, size in wanted.items())


def changed_at(attempt: Attempt) -> datetime:
    """When the attempt got its present size."""
    if attempt.sizes:
        return datetime.fromtimestamp(attempt.sizes[-1][0] / 1000, tz=UTC)
    return attempt.started_at or attempt.placed_at


def restart_cost(attempt: Attempt) -> timedelta:
    """How long its pods take to run again, measured by its own start."""
    return pace.restart_cost(attempt.placed_at, attempt.started_at)


_MOST_SPARES = 100
"""Elastic jobs below their max that are looked at in one cycle."""


def _growth(job: Job, gang: Any, wanted: Sizes, unready: Reason | None) -> Growth:
    cluster = job.cluster.name if job.cluster else ""
    total = holds.plus(job.total, gang.total)
    if snapshot.flavors_charged(job.charge):
        message = "it is charged by GPU flavor now: to grow it, suspend the job, apply another size, and resume it"
        unready = Reason(Code.NEVER_FITS, message)
    return Growth(gang, cluster, wanted, total, (str(job.uid), job.attempt), unready)


def _added(job: Job, wanted: Sizes) -> list[dict[str, Any]]:
    """The job's roles with the pods to add alone. Whatever is to be divided is so before it is placed, not when it grows."""
    roles = [{**role, "replicas": wanted.get(role["name"], 0) - role["replicas"]} for role in job.roles]
    return [{name: role[name] for name in role if name != "divides"} for role in roles if role["replicas"] > 0]


def _as_gang(job: Job, wanted: Sizes, asked_at: datetime) -> dict[str, Any]:
    """The columns of a waiting gang, for the pods to add: it has no past attempts, and is charged where its job is."""
    roles = _added(job, wanted)
    total: dict[str, int] = {}
    for role in roles:
        total = holds.plus(total, {resource: amount * role["replicas"] for resource, amount in role["request"].items()})
    row = {name: getattr(job, name) for name in snapshot.WAITING}
    own = {"roles": roles, "total": total, "queued_at": asked_at, "attempt": 0, "shares": []}
    return {**row, **own, "charge": None if job.charge is not None else {}}


def _unready(jobs: Sequence[Job]) -> Mapping[UUID, Reason]:
    """The jobs whose copy has not the size in force yet: pods that are leaving must not be taken for those that come."""
    current = {(job.uid, job.attempt): job for job in jobs}
    uids = [job.uid for job in jobs]
    ordered = Work.objects.filter(job_uid__in=uids, resize_wanted__gt=F("resize_done"))
    behind = set(ordered.values_list("job_uid", "attempt")) & current.keys()
    live = Pod.objects.filter(job_uid__in=uids, phase__in=snapshot.LIVE).order_by()
    counted = live.values_list("job_uid", "attempt").annotate(pods=Count("pk"))
    pods = {(uid, attempt): count for uid, attempt, count in counted}
    behind |= {key for key, job in current.items() if pods.get(key, 0) > sizes.pods_of(job)}
    return {
        uid: Reason(
            Code.WAITING_FOR_MEMBER,
            f"{current[uid, attempt].cluster} is still bringing it to the size in force:"
            f" {pods.get((uid, attempt), 0)} pods of {sizes.pods_of(current[uid, attempt])}",
        )
        for uid, attempt in behind
    }


@transaction.atomic
def write(plan: GrowthPlan, epoch: int, now: datetime) -> set[int] | None:
    """Writes the growths, and the reasons of those that wait. Returns the jobs that have grown; None: the lease was lost."""
    if not lease.renew(epoch, now):
        return None
    if not apply.is_tree_in_force(plan.tree_version):
        cycle_requests.request()
        return set()
    usable, is_closed = apply.usable_clusters(), apply.closed_queues()
    pks = [grown.growth.gang.job_id for grown in plan.grown] + [growth.gang.job_id for growth, _ in plan.waits]
    locked = Job.objects.filter(pk__in=pks).select_related("cluster").order_by("pk")
    jobs = {job.pk: job for job in locked.select_for_update(no_key=True, of=("self",))}
    grown = [
        (job, each)
        for each in plan.grown
        if (job := jobs.get(each.growth.gang.job_id)) is not None
        and _is_as_planned(job, each.growth)
        and job.cluster_id in usable
        and not is_closed(each.growth.gang)
    ]
    lines = [_grow(job, each, now) for job, each in grown]
    lines += _overdue(plan, jobs, now)
    changed = [*(job for job, _ in grown), *_changed_waits(plan, jobs, now)]
    if changed:  # last: nothing else is locked once the journal is written to
        announce_jobs(changed, now, sizes.SIZED, lines)
    return {job.pk for job, _ in grown}


def _is_as_planned(job: Job, growth: Growth) -> bool:
    gang = growth.gang
    runs = job.state == Job.State.RUNNING and not job.suspended and job.deleting_at is None
    now = (job.attempt, job.generation, job.leaf, job.preemptible)
    wanted = sizes.waiting(job)
    is_wanted = wanted == (growth.part_of or growth.sizes) if wanted else job.elastic and job.resize is None
    return runs and is_wanted and now == (growth.hold_key[1], gang.generation, gang.leaf, gang.preemptible)


def _grow(job: Job, grown: Grown, now: datetime) -> events.Line:
    before, asked_for = sizes.in_force(job), sizes.waiting(job)
    sizes.change(job, grown.growth.sizes, now)
    if grown.growth.part_of is None:
        job.resize = None
    _hold(job, grown.hold, now)
    metrics.RESIZES.labels("grow").inc()
    why = "" if asked_for else ": it is elastic, and no waiting job could use what is free"
    return job_event(job, "Resized", f"{bounds.changed(before, grown.growth.sizes)}, on {grown.growth.cluster}{why}")


def _hold(job: Job, hold: CapacityHold, now: datetime) -> None:
    held = {
        "cluster_id": job.cluster_id,
        "amounts": dict(hold.total),
        "nodes": [[dict(amounts), list(names)] for amounts, names in hold.nodes],
        "pods": sizes.pods_of(job),
        "resized_at": now,
        "released_at": None,
    }
    Hold.objects.update_or_create(
        job_uid=job.uid, attempt=job.attempt, defaults=held, create_defaults={**held, "made_at": now}
    )


def _overdue(plan: GrowthPlan, jobs: Mapping[int, Job], now: datetime) -> Iterator[events.Line]:
    """Says once of a growth that what becomes free is kept for it no longer. The job is saved with the others that changed.

    Where the clock has stepped, that is so without the hour having passed: then nothing is said.
    """
    for growth, _ in plan.waits:
        job = jobs.get(growth.gang.job_id)
        if growth.holds_up or job is None or not job.resize or job.resize.get("overdue"):
            continue
        asked_at = datetime.fromisoformat(job.resize["at"])
        if _is_as_planned(job, growth) and clock_steps.elapsed(now).since(asked_at) >= pace.HOLDS_UP_FOR:
            job.resize = {**job.resize, "overdue": True, "reason": None}
            hours = pace.HOLDS_UP_FOR.total_seconds() / 3600
            words = (
                f"{bounds.changed(sizes.in_force(job), growth.sizes)} has waited for {hours:g} h on {growth.cluster}"
            )
            message = f"{words}: it is asked for still, and elastic jobs may take what becomes free meanwhile"
            yield job_event(job, "GrowthOverdue", message, warning=True)


def _changed_waits(plan: GrowthPlan, jobs: Mapping[int, Job], now: datetime) -> Iterator[Job]:
    """Jobs with a new reason, which is set; a changed amount alone is new only when the reason is old."""
    for growth, reason in plan.waits:
        job = jobs.get(growth.gang.job_id)
        if job is None or job.resize is None or not _is_as_planned(job, growth):
            continue
        if apply.differs(reason, job.resize.get("reason"), now):
            job.resize = {**job.resize, "reason": {**reason.as_json(), "at": now.isoformat()}}
            yield job
