"""Reclaim when jobs that ask the same wait together: those that fit their min are served, and planning changes nothing."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.core.gang.types import AdmittedGang, CapacityHold
from jobs.core.preemption import planner
from jobs.core.scheduling.scheduler import Scheduler
from tests.jobs.core import fleets
from tests.jobs.core.builders import GPU, NOON, PLENTY, a_quota, cluster, mine, node, under
from tests.jobs.core.playing import VirtualFleet
from tests.quotas.core.builders import quota
from tests.support.examples import examples

randoms = st.randoms(use_true_random=False)


def preempted(preemption: planner.PreemptionPlan) -> list[tuple[int, int, str]]:
    return [(each.target.job_id, each.preemptor.job_id, each.goes_to) for each in preemption.evictions]


def content(preemption: planner.PreemptionPlan) -> list[int]:
    return list(preemption.awaiting)


@settings(max_examples=examples(40), deadline=None)
@given(randoms, st.integers(0, 8))
@pytest.mark.parametrize("kind", [fleets.quarrelling, fleets.families])
def test_it_plans_the_same_the_second_time(kind, rng, cycles):
    fleet = kind(rng)
    alike = rng.choice(sorted(fleet.gangs))
    for copy in range(rng.randint(0, 5)):
        twin = 1000 + copy
        fleet.gangs[twin] = replace(fleet.gangs[alike], job_id=twin, name=f"default/twin-{copy}")
        fleet.comes[twin] = fleet.comes.get(alike, 0)
    for _ in range(cycles):
        fleet.step()
    runners, scheduler = list(fleet.running.values()), Scheduler.from_snapshot(fleet.world())
    now = NOON + cycles * fleet.pace
    plan = scheduler.run(now)
    once, twice = (planner.plan_preemption(scheduler, plan, lambda: runners, now) for _ in range(2))
    assert (preempted(once), content(once), once.no_targets, once.again) == (
        preempted(twice), content(twice), twice.no_targets, twice.again
    )  # fmt: skip


def borrower(
    name: str, job_id: int, node_name: str, leaf: str = "b", priority: int = 0
) -> tuple[AdmittedGang, CapacityHold]:
    gang = mine(name, leaf, workers=0, gpus=8)
    started, key = NOON - timedelta(hours=1) + timedelta(seconds=job_id), ("run", job_id)
    runner = AdmittedGang(job_id, gang.name, gang.charge, priority, started, "north", gang.total, hold_key=key)
    return runner, CapacityHold(key, "north", gang.total, ((gang.roles[0][2], (node_name,)),))


@pytest.mark.parametrize("waiting", range(1, 21))
@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("by", ["promise", "priority"])
def test_it_preempts_for_as_many_as_have_a_right_however_many_wait_and_however_often_it_plans(by, alike, waiting):
    """Four nodes of 8 GPUs, all in use: two by borrowers, or all by lower priorities of the queue itself."""
    total = {**PLENTY, GPU: 32}
    policy = {"attributes": {"preempt-policy": "PreemptLowerPriority"}} if by == "priority" else {}
    low = 32 if by == "priority" else 16
    leaves = [quota("a", {GPU: low}, {GPU: 32}, **policy), quota("b", {GPU: 32 - low}, {GPU: 32})]
    pairs = [borrower(f"r{i}", i, f"north-{i - 1}", "a" if by == "priority" else "b") for i in range(1, 5)]
    runners, holds = [runner for runner, _ in pairs], tuple(promise for _, promise in pairs)
    site = replace(cluster("north", [node(8)] * 4), holds=holds)
    gangs = [
        mine(f"w{i:02d}", "a", workers=0, gpus=8, after_s=i, priority=5, job_id=100 + i, **_unlike(alike, i))
        for i in range(waiting)
    ]
    rules = a_quota(*leaves, charges=[runner.charge for runner in runners], total=total)
    scheduler = Scheduler.from_snapshot(under(rules, gangs, [site]))
    plan = scheduler.run(NOON)
    for _ in range(3):
        orders = planner.plan_preemption(scheduler, plan, lambda: runners, NOON)
    assert len(orders.evictions) == min(waiting, 4 if by == "priority" else 2)
    assert [each.preemptor.job_id for each in orders.evictions] == [100 + i for i in range(len(orders.evictions))]


def _unlike(alike: bool, number: int) -> dict:
    """A millicore more for each."""
    if alike:
        return {}
    request = {"cpu": 1000 + number, "memory": 2**30, GPU: 8, "pods": 1}
    return {"roles": (("master", 1, request),), "total": request}


def test_it_keeps_the_promise_within_a_minute_when_one_job_more_than_the_min_holds_is_submitted():
    fleet = VirtualFleet.of(64, quota("a", {GPU: 32}, {GPU: 64}), quota("b", {GPU: 0}, {GPU: 64}))
    for job in range(1, 9):
        fleet.submit(job, "b", 1, 8, 24 * 3600)
    for job in range(101, 106):
        fleet.submit(job, "a", 1, 8, 24 * 3600, at=60)
    fleet.play(600)
    assert fleet.first_start("a") <= 60 + 60
    assert sum(job > 100 for job in fleet.running) == 4 and len(fleet.kills) == 4
