"""Whom the cycle takes back from: only for one that could then be placed, never twice for the same, and never for nothing."""

from dataclasses import replace
from datetime import timedelta

from jobs.core.gang.types import AdmittedGang, CapacityHold
from jobs.core.preemption import planner
from jobs.core.preemption.cost import Loss
from jobs.core.scheduling.scheduler import Scheduler
from tests.jobs.core.builders import GPU, NOON, PLENTY, a_quota, cluster, mine, node, request, under
from tests.quotas.core.builders import quota

TOTAL = {**PLENTY, GPU: 6}
LEAVES = [quota("a", {GPU: 3}, {GPU: 6}), quota("b", {GPU: 3}, {GPU: 6})]


def runner(name: str, job_id: int, leaf: str = "b", at: str = "north", **fields) -> AdmittedGang:
    made = mine(name, leaf)
    started = NOON + timedelta(seconds=job_id)
    return AdmittedGang(job_id, made.name, made.charge, 0, started, at, made.total, hold_key=("run", job_id), **fields)


def taken_by(runners) -> tuple[CapacityHold, ...]:
    return tuple(CapacityHold(("run", each.job_id), "north", each.total) for each in runners)


def full(runners, preemptors, leaving=()):
    rules = a_quota(*LEAVES, charges=[each.charge for each in (*runners, *leaving)], total=TOTAL)
    north = replace(cluster("north", [node(6)]), holds=taken_by([*runners, *leaving]))
    return under(rules, preemptors, [north], leaving)


def play(world, runners):
    scheduler = Scheduler.from_snapshot(world)
    return planner.plan_preemption(scheduler, scheduler.run(NOON), lambda: runners, NOON)


def test_it_takes_the_one_that_started_last_and_says_where_the_claimant_goes():
    runners = [runner("old", 1), runner("young", 2)]
    made = play(full(runners, [mine("preemptor")]), runners)
    assert [(each.target.name, each.goes_to) for each in made.evictions] == [("default/young", "north")]


def test_it_takes_the_one_that_loses_least():
    runners = [runner("old", 1), runner("young", 2)]
    for loss in (Loss(elastic=True), Loss(checkpointed=True)):
        scheduler = Scheduler.from_snapshot(full(runners, [mine("preemptor")]))
        made = planner.plan_preemption(
            scheduler, scheduler.run(NOON), lambda: runners, NOON, lambda loss=loss: {1: loss}
        )
        assert [each.target.name for each in made.evictions] == ["default/old"]


def test_it_takes_nobody_for_one_that_no_cluster_could_hold():
    runners = [runner("old", 1), runner("young", 2, at="elsewhere")]
    assert play(full(runners, [mine("preemptor", gpus=1, workers=2)]), runners[:1]).evictions != []
    lost = [replace(each, cluster="elsewhere", hold_key=None) for each in runners]
    assert play(full(lost, [mine("preemptor")]), lost).evictions == []


def test_it_waits_for_those_who_leave_already_instead_of_taking_more():
    preemptor, stays = mine("preemptor"), runner("old", 1)
    leaving = runner("young", 2, leaves_for=preemptor.job_id, goes_to="north", until=NOON)
    made = play(full([stays], [preemptor], leaving=[leaving]), [stays])
    assert made.evictions == [] and made.awaiting == {preemptor.job_id: [leaving]}


def test_it_takes_nobody_for_one_whose_own_queue_is_above_its_min():
    runners = [runner("mine", 1, "a"), runner("other", 2, "b")]
    assert play(full(runners, [mine("more")]), runners).evictions == []


def test_it_takes_back_a_place_from_a_borrower_when_the_quota_allows_but_no_cluster_has_room():
    total = {**PLENTY, GPU: 12}
    runners = [runner("old", 1), runner("young", 2)]
    leaves = [quota("a", {GPU: 3}, {GPU: 12}), quota("b", {GPU: 3}, {GPU: 12})]
    rules = a_quota(*leaves, charges=[each.charge for each in runners], total=total)
    north = cluster("north", [node(6)])
    seen = under(rules, [mine("preemptor")], [replace(north, holds=taken_by(runners))])
    assert [each.target.name for each in play(seen, runners).evictions] == ["default/young"]


def test_it_leaves_alone_whoever_may_not_be_preempted():
    runners = [replace(each, charge=replace(each.charge, preemptible=False)) for each in (runner("old", 1),)]
    assert play(full([*runners, runner("young", 2)], [mine("preemptor")]), runners).evictions == []


def test_it_serves_many_claimants_in_one_go_without_taking_one_victim_twice():
    total = {**PLENTY, GPU: 12}
    runners = [runner(f"v{i}", i) for i in range(1, 5)]
    leaves = [quota("a", {GPU: 6}, {GPU: 12}), quota("b", {GPU: 6}, {GPU: 12})]
    rules = a_quota(*leaves, charges=[each.charge for each in runners], total=total)
    north = cluster("north", [node(12)])
    preemptors = [mine("one"), mine("two", after_s=1), mine("three", after_s=2)]
    made = play(under(rules, preemptors, [replace(north, holds=taken_by(runners))]), runners)
    assert [(each.preemptor.name, each.target.name) for each in made.evictions] == [
        ("default/one", "default/v4"),
        ("default/two", "default/v3"),
    ]


def test_it_takes_back_even_from_the_one_it_had_to_leave_for_when_that_one_borrows_now():
    preemptor, kept, taker = mine("preemptor"), runner("kept", 1), runner("taker", 2)
    kept = replace(kept, charge=replace(kept.charge, preemptible=False))
    lost = replace(runner("preemptor", preemptor.job_id, "a"), cluster="", hold_key=None, leaves_for=2, until=NOON)
    seen = replace(full([kept, taker], [preemptor]), evicted=(lost,))
    assert [each.target.name for each in play(seen, [taker]).evictions] == ["default/taker"]


def test_it_keeps_no_nodes_for_a_borrower_from_one_that_was_promised_them():
    rules = a_quota(quota("a", {GPU: 3}, {GPU: 32}), quota("b", {GPU: 0}, {GPU: 32}), total={**PLENTY, GPU: 32})
    other = runner("other", 1)
    north = replace(cluster("north", [node(4)] * 4), holds=taken_by([other]))
    big = mine("big", "b", workers=3, gpus=4, after_s=-3600)
    owners = [mine(f"owner-{i}", "a", runtime_s=1e9, after_s=i) for i in range(2)]
    scheduler = Scheduler.from_snapshot(under(rules, [big, *owners], [north]))
    placed = [each.gang.name for i in range(3) for each in scheduler.run(NOON + timedelta(seconds=i)).placed]
    assert scheduler.places.reservation.gang.name == "default/big" and placed == ["default/owner-0"]


def test_it_gives_what_was_freed_for_somebodys_min_to_others_within_theirs_before_it_lends_it():
    """Lent to b, who came before, it would have to be taken from b again, in whole gangs."""
    leaves = [quota("a", {GPU: 3}, {GPU: 6}), quota("b", {GPU: 3}, {GPU: 6}), quota("c", {GPU: 0}, {GPU: 6})]
    runners = [runner("bs-own", 1, "b"), runner("lent", 2, "c")]
    rules = a_quota(*leaves, charges=[each.charge for each in runners], total=TOTAL)
    north = replace(cluster("north", [node(6)]), holds=taken_by(runners))
    waiting = [mine("first", "a", 0), mine("borrower", "b", 1, after_s=1), mine("second", "a", 1, after_s=2)]
    made = play(under(rules, waiting, [north]), runners)
    assert [(each.preemptor.name, each.target.name) for each in made.evictions] == [("default/first", "default/lent")]
    assert list(made.awaiting) == [waiting[2].job_id]


def test_it_leaves_who_has_what_was_promised_alone_although_another_of_its_queue_borrowed_a_moment_ago():
    stays = runner("stays", 1)
    held = CapacityHold(("run", 1), "north", stays.total, ((request(3), ("north-0",)),))
    waiting = [mine("small", "b", 0), mine("preemptor", "a", 0, gpus=3, after_s=1)]
    rules = a_quota(*LEAVES, charges=[stays.charge], total=TOTAL)
    scheduler = Scheduler.from_snapshot(
        under(rules, waiting, [replace(cluster("north", [node(3), node(1), node(2)]), holds=(held,))])
    )
    plan = scheduler.run(NOON)
    made = planner.plan_preemption(scheduler, plan, lambda: [stays], NOON)
    assert [each.gang.name for each in plan.placed] == ["default/small"]
    assert made.evictions == made.withdrawn == []


def test_it_asks_who_runs_for_one_who_is_promised_it_alone():
    asked = []

    def runs(runners, waiting):
        scheduler = Scheduler.from_snapshot(full(runners, [waiting]))
        planner.plan_preemption(scheduler, scheduler.run(NOON), lambda: asked.append(waiting.name) or runners, NOON)

    lent = [runner("own", 1), runner("lent", 2)]
    runs(lent, mine("promised"))
    runs(lent, mine("would-borrow", "b"))
    assert asked == ["default/promised"]
