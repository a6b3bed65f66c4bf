"""Withdraws placements of a cycle that the next cycle would preempt for a gang that waits already. Pure.

A cycle offers capacity in the quota's order, and only afterwards searches for preemption targets. So a gang that borrows may be
placed on what a waiting gang is entitled to. It has not started yet and nothing is written: its placement is withdrawn, at no
cost, and the entitled gang is placed in the same cycle. The resulting plan is one in which preemption planning finds no target
among its own placements, so that the next cycle evicts none of them unless something has happened in between.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

from jobs.core.admission.plans import Plan
from jobs.core.gang.types import AdmittedGang
from jobs.core.preemption import planner
from jobs.core.preemption.planner import Eviction, PreemptionPlan, Withdrawal
from jobs.core.scheduling.backfill_reservation import Runs, no_runs
from jobs.core.scheduling.scheduler import Scheduler

ROUNDS = 8
"""Maximum number of withdrawals and runs in one cycle. After that its placements stand, so that every cycle ends."""


def withdraw_lent(
    scheduler: Scheduler,
    plan: Plan,
    plan_preemption: Callable[[Plan], PreemptionPlan],
    now: datetime,
    runs: Callable[[], Runs] = no_runs,
) -> tuple[Plan, PreemptionPlan]:
    """The plan without placements that a waiting gang is entitled to displace, and the preemption plan that goes with it.

    Each round is what the next cycle would be if nothing happened: it knows the planned evictions, and places what then fits.
    """
    # The rounds see their own evictions as under way, or the second round would order them again.
    evictions: list[Eviction] = []
    for _ in range(ROUNDS):
        preemption = plan_preemption(plan)
        _defer(scheduler, preemption)
        evictions += preemption.evictions
        stopped = scheduler.stopped_in_vain(preemption.no_targets)
        lends = not scheduler.is_full(plan) and planner.lends_capacity(scheduler, plan)
        if not (preemption.withdrawn or lends or stopped):
            break
        scheduler.mark_no_targets(stopped)
        _withdraw(scheduler, preemption.withdrawn, now)
        _count_as_leaving(scheduler, [_under_way(eviction, now) for eviction in preemption.evictions])
        reservation, more = scheduler.places.reservation, scheduler.run(now, runs)
        plan = _joined(plan, preemption.withdrawn, more)
        if (
            not (preemption.withdrawn or preemption.evictions or more.placed or stopped)
            and scheduler.places.reservation == reservation
        ):
            break
    else:
        preemption = plan_preemption(replace(plan, placed=[]))
        _defer(scheduler, preemption)
        evictions += preemption.evictions
    new = {_under_way(eviction, now).leaving_key for eviction in evictions}
    for eviction in evictions:  # not written yet: the caller adds those it could order
        if not eviction.target.fewer:
            scheduler.evicting.pop(eviction.target.job_id, None)
    scheduler.parts = [part for part in scheduler.parts if part.leaving_key not in new]
    awaiting = {job: [g for g in victims if g.leaving_key not in new] for job, victims in preemption.awaiting.items()}
    return plan, replace(preemption, evictions=evictions, awaiting=awaiting)


def _defer(scheduler: Scheduler, preemption: PreemptionPlan) -> None:
    if not preemption.again:  # planning was postponed: what was deferred before still is
        scheduler.defer(eviction.target for eviction in preemption.deferred)


def _count_as_leaving(scheduler: Scheduler, gangs: Iterable[AdmittedGang]) -> None:
    for gang in gangs:
        if gang.fewer:
            scheduler.parts.append(gang)
        else:
            scheduler.evicting[gang.job_id] = gang


def _under_way(eviction: Eviction, now: datetime) -> AdmittedGang:
    return replace(
        eviction.target, leaves_for=eviction.preemptor.job_id, goes_to=eviction.goes_to, ordered_at=now, until=None
    )


def _withdraw(scheduler: Scheduler, withdrawn: Iterable[Withdrawal], now: datetime) -> None:
    for withdrawal in withdrawn:
        scheduler.withdraw(withdrawal.placed, withdrawal.preemptor, withdrawal.goes_to, now)


def _joined(plan: Plan, withdrawn: Iterable[Withdrawal], more: Plan) -> Plan:
    """Both plans in one; for a gang in both the later decision counts."""
    undone = {withdrawal.placed.gang.job_id for withdrawal in withdrawn}
    placements = [placed for placed in plan.placed if placed.gang.job_id not in undone] + more.placed
    starts = {placed.gang.job_id for placed in placements}
    waits = {wait.gang.job_id: wait for wait in (*plan.waits, *more.waits) if wait.gang.job_id not in starts}
    return Plan(placements, list(waits.values()), more.preemptors, more.more, plan.tree_version)
