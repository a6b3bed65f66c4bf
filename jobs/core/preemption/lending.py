"""Lets no placement of a cycle stand that the very next cycle would take back for a gang that waits already. Pure.

A cycle offers capacity in the quota's order, and only afterwards searches for preemption targets. A gang that borrows may so be
placed on what a waiting gang is entitled to. It has not started yet, and nothing is written: its placement is withdrawn, at no
cost, and the entitled gang is placed in the same cycle. What stands in the end is what preemption planning has nothing
against, so that nothing is stopped in the next cycle unless something has happened in between.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

from jobs.core.admission.plans import Plan
from jobs.core.gang.types import Runner
from jobs.core.preemption import planner
from jobs.core.preemption.planner import Eviction, PreemptionPlan, Withdrawal
from jobs.core.scheduling.backfill_reservation import Runs, no_runs
from jobs.core.scheduling.scheduler import Scheduler

ROUNDS = 8
"""How often one cycle places anew. After that its placements stand, so that whatever happens every cycle comes to an end."""


def settle(
    scheduler: Scheduler,
    plan: Plan,
    plan_preemption: Callable[[Plan], PreemptionPlan],
    now: datetime,
    runs: Callable[[], Runs] = no_runs,
) -> tuple[Plan, PreemptionPlan]:
    """The plan without placements that a waiting gang could take back, and whom that leaves to preempt.

    Each round is what the next cycle would be if nothing happened: it knows who is to be preempted, and places what then fits.
    """
    evictions: list[Eviction] = []
    for _ in range(ROUNDS):
        preemption = plan_preemption(plan)
        evictions += preemption.taken
        if not preemption.withdrawn and (scheduler.is_full(plan) or not planner.lends(scheduler, plan)):
            break
        _withdraw(scheduler, preemption.withdrawn, now)
        scheduler.leaving |= {each.runner.job_id: _leaving(each, now) for each in preemption.taken}
        kept, more = scheduler.places.kept, scheduler.run(now, runs)
        plan = _joined(plan, preemption.withdrawn, more)
        if not (preemption.withdrawn or preemption.taken or more.placed) and scheduler.places.kept == kept:
            break
    else:
        preemption = plan_preemption(replace(plan, placed=[]))
        evictions += preemption.taken
    gone = {each.runner.job_id for each in evictions}
    for job in gone:  # not written yet
        scheduler.leaving.pop(job, None)
    content = {job: [r for r in leaving if r.job_id not in gone] for job, leaving in preemption.content.items()}
    return plan, replace(preemption, taken=evictions, content=content)


def _leaving(eviction: Eviction, now: datetime) -> Runner:
    return replace(
        eviction.runner, leaves_for=eviction.claimant.job_id, goes_to=eviction.goes_to, ordered_at=now, until=None
    )


def _withdraw(scheduler: Scheduler, withdrawn: Iterable[Withdrawal], now: datetime) -> None:
    for each in withdrawn:
        scheduler.withdraw(each.placed, each.preemptor, each.goes_to, now)


def _joined(plan: Plan, withdrawn: Iterable[Withdrawal], more: Plan) -> Plan:
    """Both plans in one: the later word on a gang counts."""
    undone = {each.placed.gang.job_id for each in withdrawn}
    placed = [each for each in plan.placed if each.gang.job_id not in undone] + more.placed
    starts = {each.gang.job_id for each in placed}
    waits = {each.gang.job_id: each for each in (*plan.waits, *more.waits) if each.gang.job_id not in starts}
    return Plan(placed, list(waits.values()), more.claimants, more.more, plan.tree_version)
