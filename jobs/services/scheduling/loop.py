"""Runs the scheduling cycle (snapshot, plan, apply), in one process at a time.

Every service that frees capacity or adds demand calls `cycle_requests.request`. Requests are counted in the database: the
process that runs cycles goes on until it has served all of them, so that a request made during a cycle is not lost. A
scheduler that died is replaced when its lease expires, and its late writes are dropped because the epoch has moved on.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from threading import Lock
from uuid import UUID

from django.conf import settings
from structlog import get_logger

from fleet.services.clusters import freshness
from jobs import snapshot
from jobs.core.admission.plans import Plan
from jobs.core.gang.types import AdmittedGang
from jobs.core.preemption import lending, planner
from jobs.core.preemption.planner import PreemptionPlan
from jobs.core.scheduling.growth import plan_growth
from jobs.core.scheduling.scheduler import Scheduler
from jobs.core.scheduling.small_starts import find_small_start
from jobs.services.failover import returns
from jobs.services.lifecycle import cycle_requests, dependencies
from jobs.services.scheduling import unreadable_rows
from jobs.services.scheduling.cache import SchedulerCache
from jobs.services.scheduling.cycle_report import CycleReport
from jobs.services.scheduling.decisions import apply, growth, lease, preemption, shrinking, small_starts
from jobs.services.scheduling.decisions.rejections import Written
from jobs.services.scheduling.demand import entitlements

log = get_logger(__name__)

_RESOLUTIONS = 3
"""How often a cycle resolves quota leaves before it plans."""


def run(clock: Callable[[], datetime]) -> int:
    """Runs cycles until all requests are served; returns how many gangs were placed: 0 too while another process runs them."""
    placed, now = 0, clock()
    if _waits_for_members(now):
        return 0
    while (epoch := lease.acquire(uuid.uuid4().hex, now)) is not None:
        try:
            cycles = _Cycles(epoch, cycle_requests.requests())
            with _scheduler_cache() as cache:
                while cycles.cycle(cache, clock()):
                    pass
        finally:
            is_held = lease.release(epoch)
        placed += cycles.placed
        # A request may have come between the last look at their number and the release, when the lease was still held.
        if not is_held or cycles.served == cycle_requests.requests():
            break
        now = clock()
    return placed


def _waits_for_members(now: datetime) -> bool:
    """Whether members may have newer attempts than the database, which may be a backup (`jobs.services.failover.restored`)."""
    freshness.review(now)
    unobserved = freshness.unobserved(now)
    if unobserved:
        log.info("scheduling waits until members are observed", members=unobserved)
    return bool(unobserved)


def advance_evictions(now: datetime, uids: Sequence[UUID] | None = None) -> None:
    """Takes the evictions in progress, or those of these jobs, one step further; requests a cycle when one has ended."""
    if preemption.advance(now, uids) + shrinking.settle(now):
        cycle_requests.request()


@dataclass
class _Cycles:
    """The cycles run under one epoch of the lease."""

    epoch: int
    served: int
    """Requests that had been made when the last cycle began."""
    placed: int = 0
    _postponed: int = 0
    """Cycles in a row whose preemption was postponed."""

    def cycle(self, cache: SchedulerCache, now: datetime) -> bool:
        """Runs one cycle; whether another one has to follow."""
        report = CycleReport(self.epoch)

        # 1. Bring the snapshot up to date from the journal, with the quota leaf of every job under the tree in force.
        scheduler = _refreshed(cache, now)
        report.step("snapshot")

        # 2. Evict jobs from stopped queues and above limits. The snapshot has to know them as leaving before it plans.
        if _evict_by_tree(cache, now):
            scheduler = _refreshed(cache, now)
        report.step("stopped_queues")

        # 3. Plan: go through the waiting gangs in fair order and find a place for each that its quota admits.
        plan = scheduler.run(now, cache.runs)
        report.step("plan")

        # 4. Choose preemption targets for the gangs within their guaranteed quota that found no place. Placements of this very
        #    plan that would be targets are withdrawn: nothing is stopped that has only just been placed.
        plan, orders = lending.withdraw_lent(
            scheduler, plan, self._preemption_planner(cache, plan, now), now, cache.runs
        )
        plan.waits = apply.changed_reasons(plan.waits, orders, now)
        report.step("preemption")
        _record_problems(scheduler, self.epoch, now)

        # 5. Let attempts go on whose copy runs again where it was left, before the plan starts a second copy elsewhere.
        if replaced := [placed.gang.job_id for placed in plan.placed if placed.gang.attempt]:
            returns.adopt(now, replaced)
        report.step("adopt")

        # 6. Write all decisions in one transaction under the lease. None: the lease was lost and nothing was written.
        is_empty = not (plan.placed or plan.waits or orders.evictions or orders.awaiting)
        written = Written() if is_empty else apply.apply_plan(plan, self.epoch, now, orders)
        report.step("apply")

        # 7. Correct the cache by what was really written; the next cycle starts from it.
        _confirm_written(cache, plan, written)
        report.step("cache")

        # 8. What is left goes to elastic gangs. Not while evictions were ordered that the scheduler has not read yet: what they
        #    free is for others.
        idle = not (plan.placed or plan.more or orders.awaiting)
        starts_small = False
        if written is not None and not orders.evictions:
            starts_small = _use_rest(cache, self.epoch, now, idle=idle)
        report.step("growth")

        report.done(
            placed=len(written.placed) if written else 0,
            waiting=len(plan.waits),
            preempted=len(orders.evictions),
            dropped=written is None,
        )
        if written is None:
            return False
        self.placed += len(written.placed)
        before, self.served = self.served, cycle_requests.complete(self.served)
        return plan.more or orders.again or starts_small or before != self.served or cache.has_stale_entitlements

    def _preemption_planner(self, cache: SchedulerCache, plan: Plan, now: datetime) -> Callable[[Plan], PreemptionPlan]:
        """None new while requests are unserved, for a while: capacity freed meanwhile may make preemption needless."""
        postpone = (
            plan.preemptors
            and self._postponed < settings.CONVOY_SCHEDULER.max_postponed_preemptions
            and self.served != cycle_requests.requests()
        )
        self._postponed = self._postponed + 1 if postpone else 0
        return partial(_postpone if postpone else _find_targets, cache, now)


def _record_problems(scheduler: Scheduler, epoch: int, now: datetime) -> None:
    """Leaves out the gangs whose planning raised, and records the rows that could not be read."""
    if scheduler.failed:
        apply.leave_out(scheduler.failed, epoch, now)
        scheduler.failed.clear()
    unreadable_rows.record(now)


def _evict_by_tree(cache: SchedulerCache, now: datetime) -> int:
    """Evictions that the quota tree and its queues ask for by themselves, whether or not another job waits."""
    evicted, scheduler = 0, cache.scheduler
    if cache.has_stopped_queues:
        evicted += preemption.evict_stopped(now)
    if cache.has_removed_leaves:
        evicted += preemption.evict_without_leaf(now)
        cache.has_removed_leaves = False
    if cache.takes_back_excess and scheduler.quota:
        evicted += preemption.evict_excess(scheduler.quota, scheduler.evicting.values(), now)
    return evicted


def _postpone(cache: SchedulerCache, now: datetime, plan: Plan) -> PreemptionPlan:
    """No preemption of running gangs in this cycle, and no placement that would be preempted in the next one."""
    scheduler = cache.scheduler
    if not planner.lends_capacity(scheduler, plan):
        return planner.postpone_preemption(scheduler)
    orders = planner.plan_preemption(scheduler, plan, cache.preemption_candidates, now, cache.preemption_costs)
    return replace(planner.postpone_preemption(scheduler), withdrawn=orders.withdrawn)


def _find_targets(cache: SchedulerCache, now: datetime, plan: Plan) -> PreemptionPlan:
    """Preemption targets among the cached running gangs; when there are any, they are chosen again from fresh rows."""
    scheduler = cache.scheduler
    orders = planner.plan_preemption(scheduler, plan, cache.preemption_candidates, now, cache.preemption_costs)
    if orders.evictions:
        orders = planner.plan_preemption(
            scheduler, plan, partial(_running_gangs, scheduler), now, preemption.eviction_costs
        )
    scheduler.mark_no_targets(orders.no_targets)
    return orders


def _running_gangs(scheduler: Scheduler) -> Sequence[AdmittedGang]:
    return snapshot.load_runners(snapshot.running_jobs(), scheduler.quota) if scheduler.quota else ()


def _refreshed(cache: SchedulerCache, now: datetime) -> Scheduler:
    dependencies.settle(now)
    scheduler = cache.refresh(now)
    # The tree may change again, or a job be submitted under the former one, while leaves are resolved. What is still stale then
    # waits for the next cycle: edits without a pause hold up no job that they do not concern.
    for _ in range(_RESOLUTIONS):
        if not cache.has_stale_entitlements:
            break
        entitlements.refit_stale()
        cache.invalidate()
        scheduler = cache.refresh(now)
    return scheduler


def _confirm_written(cache: SchedulerCache, plan: Plan, written: Written | None) -> None:
    if written is None:
        cache.invalidate()
        return
    cache.reload_unplaced(placed for placed in plan.placed if placed.gang.job_id not in written.placed)
    cache.applied(written.placed, written.versions)


def _use_rest(cache: SchedulerCache, epoch: int, now: datetime, *, idle: bool) -> bool:
    """Gives a waiting gang the size at which it can start, or lets running ones grow; whether there is one to place now.

    ``idle``: the cycle left nothing else to be done.
    """
    if idle and cache.has_small_starters and _start_small(cache, epoch, now):
        return True
    if cache.has_growths or cache.has_elastic:
        _grow(cache, epoch, now, idle=idle)
    return False


def _start_small(cache: SchedulerCache, epoch: int, now: datetime) -> bool:
    """Whether a waiting job has got a smaller size."""
    start = find_small_start(cache.scheduler, small_starts.load(), now)
    written = small_starts.write(start, epoch, now) if start is not None else False
    if written is None:
        cache.invalidate()
    return bool(written)


def _grow(cache: SchedulerCache, epoch: int, now: datetime, *, idle: bool) -> None:
    """``idle``: the cycle left nothing to be done, so that what is free may go to elastic jobs."""
    asked_for = growth.load(now, idle=idle) if cache.has_growths else []
    spares = growth.load_spares(now) if idle and cache.has_elastic else []
    if not (asked_for or spares):
        return
    plan = plan_growth(cache.scheduler, asked_for, now, spares)
    if not (plan.grown or plan.waits):
        return
    grown = growth.write(plan, epoch, now)
    if grown is None:
        cache.invalidate()
        return
    cache.reload_ungrown([each for each in plan.grown if each.growth.gang.job_id not in grown])


_idle_caches: list[SchedulerCache] = []
_idle_caches_lock = Lock()


@contextmanager
def _scheduler_cache() -> Iterator[SchedulerCache]:
    """This process's cache, or a new one while another thread uses it. An exception throws it away: it may be half updated."""
    with _idle_caches_lock:
        cache = _idle_caches.pop() if _idle_caches else SchedulerCache()
    yield cache
    with _idle_caches_lock:
        _idle_caches[:] = [cache]
