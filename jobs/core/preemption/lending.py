"""Lets no placement of a cycle stand that the very next cycle would take back for a gang that waits already. Pure.

A cycle offers capacity in the quota's order, and only afterwards searches for preemption targets. A gang that borrows may so be
placed on what a waiting gang is entitled to. It has not started yet, and nothing is written: its placement is withdrawn, at no
cost, and the entitled gang is placed in the same cycle. What stands in the end is what preemption planning has nothing
against, so that nothing is stopped in the next cycle unless something has happened in between.
"""

from collections.abc import Callable, Iterable
from datetime import datetime

from jobs.core.admission.plans import Plan
from jobs.core.preemption import planner
from jobs.core.preemption.planner import Takeback, Withdrawal
from jobs.core.scheduling.backfill_reservation import Runs, nothing_runs
from jobs.core.scheduling.scheduler import AT_ONCE, Scheduler

ROUNDS = 8
"""How often one cycle places anew; what would have to be withdrawn after that is withdrawn, and left to the next cycle."""


def settle(
    scheduler: Scheduler,
    plan: Plan,
    plan_preemption: Callable[[Plan], Takeback],
    now: datetime,
    runs: Callable[[], Runs] = nothing_runs,
) -> tuple[Plan, Takeback]:
    """The plan without placements that a waiting gang could take back, and whom that leaves to preempt."""
    for _ in range(ROUNDS):
        preemption = plan_preemption(plan)
        _withdraw(scheduler, preemption.withdrawn, now)
        if not preemption.withdrawn and (len(plan.placed) >= AT_ONCE or not planner.lends(scheduler, plan)):
            return plan, preemption
        kept, more = scheduler.places.kept, scheduler.run(now, runs)
        rests = not (preemption.withdrawn or more.placed) and scheduler.places.kept == kept
        plan = _joined(plan, preemption.withdrawn, more)
        if rests:
            return plan, preemption
    preemption = plan_preemption(plan)
    _withdraw(scheduler, preemption.withdrawn, now)
    preemption.again |= bool(preemption.withdrawn)
    return _joined(plan, preemption.withdrawn, Plan(claimants=plan.claimants, more=plan.more)), preemption


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
