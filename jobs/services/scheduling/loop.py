"""Runs the scheduling cycle: load, plan, apply; by one process at a time.

Whoever frees or asks for something calls `request`. Requests are counted: whoever is busy goes on until it has served them
all, so that one that finds it busy is not lost. A scheduler that died is replaced when its lease expires, and its late writes
are dropped because the epoch has moved on.
"""

import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from threading import Lock
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from structlog import get_logger

from fleet import events
from fleet.db import bulk
from fleet.models import Cluster, Hold, Lease
from jobs import metrics, snapshot
from jobs.core.admission.plans import Placed, Plan, Waits
from jobs.core.division import shares as parts
from jobs.core.explain import timeline
from jobs.core.gang.types import Gang, Runner
from jobs.core.placement import placed_topology
from jobs.core.preemption import planner
from jobs.core.preemption.planner import Takeback
from jobs.core.reasons import Code, Reason
from jobs.core.scheduling.scheduler import Scheduler
from jobs.events import announce_jobs, line, say
from jobs.models import Attempt, Binding, Job, Work
from jobs.services.lifecycle import cycle_requests, returns, shares
from jobs.services.scheduling import entitlements, preemption, rejections
from jobs.services.scheduling.cache import Picture
from jobs.services.scheduling.cycle_report import CycleReport
from jobs.services.scheduling.rejections import Written
from quotas import queries
from quotas.models import Queue, QuotaTree

log = get_logger(__name__)

_TERM = timedelta(seconds=30)
_MESSAGES = 8
"""For all that one plan places, or one for each cluster: as many as a worker does at once."""
_PUT_OFF = 2
"""Cycles in a row that stop nobody because there is news already that they do not know of: what ended may be room enough."""
_REASON_REFRESH = timedelta(seconds=5)
"""How old the amounts in an unchanged reason may be, so that a thousand waiting jobs are not rewritten each cycle."""


def let_go(now: datetime, uids: Sequence[UUID] | None = None) -> None:
    """Brings those who leave, or these, one step on; a cycle follows when one of them is gone."""
    if preemption.advance(now, uids):
        cycle_requests.request()


def run(clock: Callable[[], datetime]) -> int:
    """Runs cycles until nothing more is wanted; returns how many gangs were placed. 0 as well when another one runs."""
    placed = 0
    while (epoch := _acquire(uuid.uuid4().hex, clock())) is not None:
        try:
            with _pictures() as picture:
                more, served = _cycles(picture, epoch, clock)
        finally:
            is_ours = _release(epoch)
        placed += more
        if not is_ours or served == cycle_requests.requests():
            break
    return placed


def _cycles(picture: Picture, epoch: int, clock: Callable[[], datetime]) -> tuple[int, int]:
    """How many were placed, and how many requests were there before the last cycle began."""
    placed, asked, put_off = 0, cycle_requests.requests(), 0
    while True:
        now = clock()
        report = CycleReport(epoch)
        scheduler = _refreshed(picture, now)
        if picture.stops_somebody and preemption.take_back_stopped(now):
            scheduler = _refreshed(picture, now)
        report.step("snapshot")
        plan = scheduler.run(now, picture.runs)
        report.step("plan")
        put_off = put_off + 1 if plan.claimants and put_off < _PUT_OFF and asked != cycle_requests.requests() else 0
        orders = planner.put_off(scheduler) if put_off else _take_back(picture, plan, now)
        plan.waits = _untold(plan.waits, orders, now)
        report.step("preemption")
        if again := [each.gang.job_id for each in plan.placed if each.gang.attempt]:
            returns.adopt(now, again)
        is_news = plan.placed or plan.waits or orders.taken or orders.content
        written = apply(plan, epoch, now, orders) if is_news else Written()
        report.step("apply")
        report.done(
            placed=len(written.placed) if written else 0,
            waiting=len(plan.waits),
            preempted=len(orders.taken),
            dropped=written is None,
        )
        if written is None:
            picture.forget()
            return placed, asked
        picture.doubt(each for each in plan.placed if each.gang.job_id not in written.placed)
        picture.wrote(written.placed, written.versions)
        placed += len(written.placed)
        served, asked = asked, cycle_requests.requests()
        if not (plan.more or orders.again) and asked == served:
            return placed, served


def _take_back(picture: Picture, plan: Plan, now: datetime) -> Takeback:
    """Who has to leave, by what is known of everybody who runs; if anybody has, by everybody read anew."""
    scheduler = picture.scheduler
    orders = planner.plan(scheduler, plan, picture.runners, now, picture.losses)
    if orders.taken:
        orders = planner.plan(scheduler, plan, partial(_runners, scheduler), now, preemption.losses)
    scheduler.mark_no_targets(orders.no_targets)
    return orders


def _refreshed(picture: Picture, now: datetime) -> Scheduler:
    """With everybody read under the tree in force."""
    scheduler = picture.refresh(now)
    if picture.meets_others and entitlements.refit_stale():
        picture.forget()
        scheduler = picture.refresh(now)
    picture.meets_others = False
    return scheduler


_kept: list[Picture] = []
_keeping = Lock()


@contextmanager
def _pictures() -> Iterator[Picture]:
    """The picture this process keeps, or a new one when another thread has it; thrown away when anything goes wrong with it."""
    with _keeping:
        picture = _kept.pop() if _kept else Picture()
    yield picture
    with _keeping:
        _kept[:] = [picture]


def _acquire(holder: str, now: datetime) -> int | None:
    """The epoch of the lease, now ours; None when another one holds it."""
    lease, _ = Lease.objects.get_or_create(name=cycle_requests.LEASE)
    if lease.holder and lease.expires_at and now <= lease.expires_at <= now + 2 * _TERM:
        return None
    takeable = Q(holder="") | Q(expires_at__lt=now) | Q(expires_at__gt=now + 2 * _TERM)
    free = Lease.objects.filter(takeable, name=cycle_requests.LEASE)
    epoch = lease.epoch + 1
    ours = free.filter(epoch=lease.epoch).update(holder=holder, epoch=epoch, expires_at=now + _TERM)
    if ours and lease.holder:
        log.warning("scheduler lease taken over", epoch=epoch, from_holder=lease.holder, expired_at=lease.expires_at)
    return epoch if ours else None


def _release(epoch: int) -> bool:
    """Whether it was ours still: who has it instead knows of every request that was there when it began."""
    return Lease.objects.filter(name=cycle_requests.LEASE, epoch=epoch).update(holder="") == 1


def _runners(scheduler: Scheduler) -> Sequence[Runner]:
    return snapshot.load_runners(snapshot.running_jobs(), scheduler.quota) if scheduler.quota else ()


def apply(plan: Plan, epoch: int, now: datetime, orders: Takeback | None = None) -> Written | None:
    """Writes a plan down, without the gangs that the database refuses. None when the lease was lost."""
    written = rejections.write(partial(_apply, epoch, now), plan, orders)
    return _reject(written, epoch, now) if written and written.rejected else written


def _keep(epoch: int, now: datetime) -> bool:
    """Whether the lease is ours, from now on for another term; it stays locked until the transaction ends."""
    ours = Lease.objects.filter(name=cycle_requests.LEASE, epoch=epoch).exclude(holder="")
    return ours.update(expires_at=now + _TERM) == 1


@transaction.atomic
def _reject(written: Written, epoch: int, now: datetime) -> Written | None:
    if not _keep(epoch, now):
        return None
    rejections.tell(list(_locked(written.rejected).values()), written.rejected, now)
    cycle_requests.request()
    return written


@transaction.atomic
def _apply(epoch: int, now: datetime, plan: Plan, orders: Takeback | None) -> Written | None:
    """In one guarded step. None when the lease is lost and nothing was written."""
    if not _keep(epoch, now):
        return None
    if not _same_tree(plan):
        cycle_requests.request()
        return Written()
    standing = set(Cluster.objects.filter(cordoned=False, stale_since=None).values_list("pk", flat=True))
    waiting = _lock(plan, orders)
    closed = _closed()
    open_ = [each for each in plan.placed if _on(each) <= standing and not closed(each)]
    won = _claim(open_, waiting)
    if won:
        _write_placed(won, now)
    waits = preemption.order(orders, now) if orders else {}
    told = _write_waiting([preemption.waits_for(each, waits) for each in plan.waits], waiting, now)
    whole = [job for job, each in won if each.gang.division is None]
    return Written({job.pk for job, _ in won}, [job.resource_version for job in (*whole, *told)])


def _on(placed: Placed) -> set[int]:
    return {share.cluster_id for share in placed.spot.shares}


def _same_tree(plan: Plan) -> bool:
    """Whether the tree the plan was made by is in force still, and stays so until this transaction ends."""
    row = QuotaTree.objects.select_for_update(no_key=True).only("resource_version").first()
    return plan.tree_version == (row.resource_version if row else 0)


def _untold(waits: Sequence[Waits], orders: Takeback, now: datetime) -> list[Waits]:
    """Those whose reason is another one now, and those whose reason the orders decide; amounts alone every few seconds."""
    mine = {*orders.content, *(each.claimant.job_id for each in orders.taken)}
    stale = (now - _REASON_REFRESH).isoformat()
    asked = [each.gang.job_id for each in waits]
    told = dict(snapshot.waiting_jobs().filter(pk__in=asked).values_list("pk", "reason").order_by()) if waits else {}
    return [
        each for each in waits if each.gang.job_id in mine or _differs(each.reason, told.get(each.gang.job_id), stale)
    ]


def _differs(fresh: Reason, old: dict[str, Any] | None, stale: str) -> bool:
    if not old or old.get("code") != fresh.code:
        return True
    return old.get("message") != fresh.message and old.get("at", "") <= stale


def _lock(plan: Plan, orders: Takeback | None) -> dict[int, Job]:
    """All rows at once and in one order, before the journal: who holds a row may wait for the journal, never the reverse.

    Those that wait still, as they are.
    """
    mine = {each.gang.job_id for each in plan.placed} | {each.gang.job_id for each in plan.waits}
    return _locked(mine | {each.runner.job_id for each in orders.taken} if orders else mine)


def _locked(pks: Collection[int]) -> dict[int, Job]:
    rows = Job.objects.filter(pk__in=pks).order_by("pk").select_for_update(no_key=True).only(*_SEEN)
    return {job.pk: job for job in rows if snapshot.waits(job.state, job.suspended, job.deleting_at)}


def _closed() -> Callable[[Placed], bool]:
    """Whether a gang's queue, or one above it, was closed since the plan was made."""
    paths = list(queries.queues().exclude(state=Queue.State.OPEN).values_list("path", flat=True))

    def closed(placed: Placed) -> bool:
        gang = placed.gang
        return gang.asks_queue and any(f"{gang.leaf}/".startswith(f"{path}/") for path in paths)

    return closed


def _claim(placed: Sequence[Placed], waiting: Mapping[int, Job]) -> list[tuple[Job, Placed]]:
    """Those that are as the plan saw them still, as they are from now on: placed and charged."""
    pairs = [(waiting[each.gang.job_id], each) for each in placed if each.gang.job_id in waiting]
    won = [(job, each) for job, each in pairs if _as_found(job) == _as_planned(each.gang)]
    for job, each in won:
        _take_place(job, each)
    return won


_SEEN = (
    "uid", "created_at", "api_version", "kind", "namespace", "name", "attempt", "generation", "leaf", "preemptible",
    "charge", "shares", "state", "suspended", "deleting_at", "reason", "waited", "resource_version",
)  # fmt: skip
_CLAIMED = ("state", "cluster", "attempt", "charge", "reason", "status", "reclaim", "unhealthy_since")


def _as_found(job: Job) -> tuple[object, ...]:
    return job.attempt, job.generation, job.leaf, job.preemptible, job.charge is not None


def _as_planned(gang: Gang) -> tuple[object, ...]:
    return gang.attempt, gang.generation, gang.leaf, gang.preemptible, gang.charged


def _take_place(job: Job, placed: Placed) -> None:
    gang, spot = placed.gang, placed.spot
    job.state, job.cluster_id, job.attempt = Job.State.PLACED, spot.cluster_id, gang.attempt + len(spot.shares)
    job.reason = Reason(Code.WAITING_FOR_MEMBER, f"placed on {spot.where}, being sent there").as_json()
    job.status, job.reclaim, job.unhealthy_since = {}, None, None
    if gang.asks_quota:
        job.charge = dict(gang.charge.amounts)


def _write_placed(pairs: Sequence[tuple[Job, Placed]], now: datetime) -> None:
    rows = [
        (job, number, share, p.gang)
        for job, p in pairs
        for number, share in enumerate(p.spot.shares, start=p.gang.attempt + 1)
    ]
    attempts = [
        {
            "job_id": job.pk,
            "number": number,
            "cluster_name": share.cluster,
            "explanation": [verdict.as_json() for verdict in share.verdicts],
            "placed_at": now,
        }
        for job, number, share, _ in rows
    ]
    bulk.store(Attempt, attempts, keyless=True)
    holds = [
        {
            "cluster_id": share.cluster_id,
            "job_uid": job.uid,
            "attempt": number,
            "amounts": dict(share.found.demand.total if gang.division else gang.total),
            "nodes": [[amounts, list(names)] for amounts, names in share.promise(None).nodes],
            "pods": share.pods,
            "made_at": now,
        }
        for job, number, share, gang in rows
    ]
    bulk.store(Hold, holds, keyless=True)
    works = bulk.store(Work, [_work(job, number, share.cluster_id, now) for job, number, share, _ in rows])
    for job, p in pairs:
        shares.settle_placed(job, p, now)
    _write_bindings(pairs, now)
    _tell_far_apart(pairs, now)
    _withdraw_former(pairs, now)
    transaction.on_commit(partial(_count_admitted, pairs, now), robust=True)
    told = "Binding has been scheduled successfully. Result: "
    said = [line(job, "ScheduleBindingSucceed", told + p.result) for job, p in pairs]
    announce_jobs([job for job, _ in pairs], now, _CLAIMED, said)
    by_cluster: dict[int, list[int]] = defaultdict(list)
    for (_, _, share, _), work in zip(rows, works, strict=True):
        by_cluster[share.cluster_id].append(work)
    _send_out(by_cluster)


def _count_admitted(pairs: Sequence[tuple[Job, Placed]], now: datetime) -> None:
    for job, placed in pairs:
        metrics.ADMITTED.labels(job.leaf).inc()
        if placed.gang.attempt == 0:
            metrics.ADMISSION_WAIT_SECONDS.labels(job.leaf).observe((now - job.created_at).total_seconds())


def _send_out(works: Mapping[int, Sequence[int]]) -> None:
    """A few share a message when they are many; never with another cluster's, which may be slow to answer."""
    together = -(-sum(map(len, works.values())) // _MESSAGES)
    for pks in works.values():
        for start in range(0, len(pks), together):
            events.enqueue("jobs.push", *pks[start : start + together])


def _work(job: Job, attempt: int, cluster_id: int, now: datetime) -> dict[str, Any]:
    return {
        "job_uid": job.uid,
        "attempt": attempt,
        "cluster_id": cluster_id,
        "api_version": job.api_version,
        "kind": job.kind,
        "namespace": job.namespace,
        "name": job.name,
        "due_at": now,
        "created_at": now,
    }


def _tell_far_apart(pairs: Sequence[tuple[Job, Placed]], now: datetime) -> None:
    """To those whose preference for a network domain was passed over."""
    for job, placed in pairs:
        if why := placed_topology.not_met(placed.spot.found):
            say(job, placed_topology.NOT_MET, why, now, warning=True)


def _write_bindings(pairs: Sequence[tuple[Job, Placed]], now: datetime) -> None:
    bulk.store(Binding, [_binding(job, p, now) for job, p in pairs if p.gang.attempt == 0], keyless=True)
    Binding.objects.bulk_create(
        [Binding(**_binding(job, p, now)) for job, p in pairs if p.gang.attempt > 0],
        update_conflicts=True,
        unique_fields=["job"],
        update_fields=["cluster", "attempt", "result", "explanation", "placement", "scheduled_at"],
    )


def _binding(job: Job, placed: Placed, now: datetime) -> dict[str, Any]:
    spot = placed.spot
    return {
        "job_id": job.pk,
        "cluster_id": spot.cluster_id,
        "attempt": job.attempt,
        "result": placed.result,
        "explanation": [verdict.explained() for verdict in spot.verdicts],
        "placement": placed_topology.kept(spot.found),
        "scheduled_at": now,
    }


def _withdraw_former(pairs: Sequence[tuple[Job, Placed]], now: datetime) -> None:
    """The replacement has its place: what earlier attempts left behind may go now (invariant I5)."""
    moved = [job.uid for job, _ in pairs if job.attempt > 1]
    former = Q()
    for job, _ in pairs:
        if job.attempt > 1:
            counting = parts.counting(job.shares, job.attempt)
            former |= Q(job_uid=job.uid, attempt__lt=job.attempt) & ~Q(attempt__in=counting)
    if not moved:
        return
    left = Work.objects.filter(former).exclude(state__in=[Work.State.GONE, Work.State.KEPT])
    for pk in list(left.values_list("pk", flat=True)):
        Work.objects.filter(pk=pk).update(state=Work.State.WITHDRAWING, due_at=now, tries=0)
        events.enqueue("jobs.push", pk)


def _write_waiting(waits: Sequence[Waits], waiting: Mapping[int, Job], now: datetime) -> list[Job]:
    wanted = {each.gang.job_id: each.reason for each in waits}
    stale = (now - _REASON_REFRESH).isoformat()
    rows = [waiting[pk] for pk in wanted if pk in waiting]
    changed = [job for job in rows if _differs(wanted[job.pk], job.reason, stale)]
    for job in changed:
        job.reason = {**wanted[job.pk].as_json(), "at": now.isoformat()}
        job.waited = timeline.entered(job.waited, timeline.owner_of(job.reason), now)
    if changed:
        announce_jobs(changed, now, ["reason", "waited"])
    return changed
