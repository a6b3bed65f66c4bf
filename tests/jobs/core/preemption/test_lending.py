"""What a cycle lends it does not take back in the next: nothing is placed only to be stopped."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.core.gang.types import AdmittedGang, CapacityHold
from jobs.core.preemption import lending, planner
from jobs.core.scheduling.scheduler import Scheduler
from tests.jobs.core.builders import GPU, NOON, PLENTY, a_quota, cluster, mine, node, under
from tests.jobs.core.playing import VirtualFleet, random_fleet
from tests.quotas.core.builders import quota
from tests.support.examples import examples

HOUR = 3600.0
SEEDS = [109, 154, 257, 286, 309, 379, 421, 494, 896, 100560, 100961, 101024, 1000000]
"""Fleets where gangs were stopped right after their start: by quota, by priority, after nodes kept for a big gang moved, and by
gangs that became entitled through the cycle's own preemption. In the last one placements were withdrawn for ever."""


def stopped_at_once(fleet: VirtualFleet) -> list[int]:
    fleet.play(4 * HOUR, tick=120.0)
    return [kill.job for kill in fleet.kills if kill.surprised]


@pytest.mark.parametrize("seed", SEEDS)
def test_it_stops_no_gang_that_it_has_just_placed(seed):
    assert stopped_at_once(random_fleet(seed)) == []


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10**6))
def test_it_never_stops_what_it_placed_unless_something_has_happened_in_between(seed):
    assert stopped_at_once(random_fleet(seed)) == []


def lent_and_entitled() -> tuple[Scheduler, list[AdmittedGang]]:
    """Two nodes of 8 GPUs: a borrower runs on one, another one waits, and so does a gang that was promised both nodes."""
    borrower = mine("running", "b", workers=0, gpus=8)
    runner = AdmittedGang(
        1, borrower.name, borrower.charge, 0, NOON - timedelta(hours=1), "north", borrower.total, hold_key=("run", 1)
    )
    promise = CapacityHold(("run", 1), "north", borrower.total, ((borrower.roles[0][2], ("north-0",)),))
    site = replace(cluster("north", [node(8)] * 2), holds=(promise,))
    leaves = quota("a", {GPU: 16}, {GPU: 16}), quota("b", {GPU: 0}, {GPU: 16})
    rules = a_quota(*leaves, charges=[runner.charge], total={**PLENTY, GPU: 16})
    waiting = [
        mine("entitled", "a", masters=0, workers=2, gpus=8, job_id=2),
        mine("borrower", "b", workers=0, gpus=8, job_id=3),
    ]
    return Scheduler.from_snapshot(under(rules, waiting, [site])), [runner]


def settle(scheduler: Scheduler, runners: list[AdmittedGang]):
    def plan_preemption(plan):
        return planner.plan_preemption(scheduler, plan, lambda: runners, NOON)

    return lending.withdraw_lent(scheduler, scheduler.run(NOON), plan_preemption, NOON)


def test_it_lends_nothing_that_a_waiting_gang_is_entitled_to_once_others_have_left():
    plan, preemption = settle(*lent_and_entitled())
    assert plan.placed == []
    assert [(each.target.job_id, each.preemptor.job_id) for each in preemption.evictions] == [(1, 2)]


def test_it_says_of_a_gang_whose_placement_was_withdrawn_why_it_waits():
    plan, _ = settle(*lent_and_entitled())
    assert {wait.gang.job_id: wait.reason.code for wait in plan.waits} == {2: "QuotaExceeded", 3: "QuotaExceeded"}


def test_it_places_the_entitled_gang_in_the_same_cycle_where_nothing_else_is_in_its_way():
    scheduler, (runner,) = lent_and_entitled()
    scheduler.places.release(runner.hold_key)
    scheduler.quota.ledger.release(runner.charge)
    scheduler.gangs[2] = entitled = replace(scheduler.gangs[2], excluded={"north": NOON + timedelta(seconds=1)})
    scheduler.put(entitled)
    first = scheduler.run(NOON)
    assert [each.gang.job_id for each in first.placed] == [3]
    scheduler.put(replace(entitled, excluded={}))
    first.preemptors = [scheduler.gangs[2]]
    plan, preemption = lending.withdraw_lent(
        scheduler, first, lambda plan: planner.plan_preemption(scheduler, plan, list, NOON), NOON
    )
    assert [each.gang.job_id for each in plan.placed] == [2] and preemption.evictions == []


def test_it_lets_placements_stand_that_it_cannot_settle_so_that_each_cycle_ends(monkeypatch):
    monkeypatch.setattr(lending, "ROUNDS", 0)
    plan, preemption = settle(*lent_and_entitled())
    assert [each.gang.job_id for each in plan.placed] == [3] and preemption.evictions == preemption.withdrawn == []
