"""The cycle under a quota tree: both answers together, whose turn it is, and what is promised to another."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.core.admission.snapshot import Closed
from jobs.core.gang.types import AdmittedGang
from jobs.core.policies.propagation import PolicySpec
from jobs.core.reasons import Code
from jobs.core.scheduling import cycle
from tests.jobs.core.builders import GPU, NOON, PLENTY, a_quota, cluster, gang, mine, node, under
from tests.quotas.core.builders import quota


def limits(low: int, high: int) -> dict:
    return {"min": {GPU: low}, "max": {GPU: high}}


def placed(plan):
    return [each.gang.name.split("/")[1] for each in plan.placed]


def why(plan):
    return {each.gang.name.split("/")[1]: each.reason for each in plan.waits}


def test_it_admits_as_many_as_the_quota_holds_and_says_what_is_used_of_what():
    rules = a_quota(quota("a", {GPU: 3}, {GPU: 5}))
    plan = cycle.run_cycle(under(rules, [mine("one"), mine("two", after_s=1)], [cluster()]), NOON)
    no = why(plan)["two"].quota
    assert placed(plan) == ["one"] and no.code is Code.QUOTA_EXCEEDED and no.path == "root/a"
    assert (no.facts["resource"], no.facts["asked"], no.facts["used"], no.facts["max"]) == (GPU, 3, 3, 5)


def test_it_leaves_the_world_as_it_was():
    rules = a_quota(quota("a", {GPU: 3}, {GPU: 5}))
    seen = under(rules, [mine("one"), mine("two", after_s=1)], [cluster()])
    assert placed(cycle.run_cycle(seen, NOON)) == placed(cycle.run_cycle(seen, NOON)) == ["one"]


def test_it_does_not_charge_whom_no_cluster_holds():
    rules = a_quota(quota("a", {GPU: 8}, {GPU: 8}))
    plan = cycle.run_cycle(
        under(rules, [mine("huge", workers=7), mine("small", after_s=1)], [cluster("n", [node(4)])]), NOON
    )
    assert placed(plan) == ["small"]
    assert why(plan)["huge"].code is Code.NO_CLUSTER_FITS and why(plan)["huge"].quota.code is Code.FITS


def test_it_tells_whom_the_quota_refuses_what_the_clusters_say():
    rules = a_quota(quota("a", {GPU: 3}, {GPU: 3}), charges=[mine("other").charge])
    plan = cycle.run_cycle(under(rules, [mine()], [cluster("n", [node(1)])]), NOON)
    assert why(plan)["llama"].code is Code.QUOTA_EXCEEDED
    assert why(plan)["llama"].clusters[0].code is Code.NOT_ENOUGH_FREE


def test_it_lets_one_that_is_charged_already_go_on_without_asking():
    rules = a_quota(quota("a", {GPU: 3}, {GPU: 3}), charges=[mine().charge])
    assert placed(cycle.run_cycle(under(rules, [mine(charged=True)], [cluster()]), NOON)) == ["llama"]


def test_it_stops_a_blocked_queue_behind_one_that_no_cluster_holds():
    rules = a_quota(quota("a", {GPU: 99}, {GPU: 99}, attributes={"queue-policy": "Block"}), outside="Run")
    gangs = [mine("huge", workers=40), mine("small", after_s=1), gang("free", workers=1)]
    plan = cycle.run_cycle(under(rules, gangs, [cluster()]), NOON)
    behind = why(plan)["small"].quota
    assert placed(plan) == ["free"] and behind.code is Code.BEHIND_IN_QUEUE
    assert (behind.facts["position"], behind.facts["blocker"]) == (2, "default/huge")


def test_it_admits_nobody_of_a_closed_queue():
    rules = a_quota(quota("a"), closed={"root/a": Closed("root", "root-abcde", "Held")})
    plan = cycle.run_cycle(under(rules, [mine()], [cluster()]), NOON)
    assert why(plan)["llama"].code is Code.QUEUE_HELD and why(plan)["llama"].quota.facts["queue"] == "root-abcde"


def test_it_holds_back_whom_no_leaf_takes_where_a_queue_is_asked_for():
    waits = gang("parked", policy=PolicySpec(suspended=True))
    lost = gang("lost", leaf_fault="label names nowhere")
    plan = cycle.run_cycle(under(a_quota(quota("a"), outside="Run"), [waits, lost, gang("free")], [cluster()]), NOON)
    assert placed(plan) == ["free"]
    assert {reason.code for reason in why(plan).values()} == {Code.NO_QUOTA_FOR_NAMESPACE}


def test_it_releases_a_suspended_policys_job_through_its_queue():
    parked = mine(policy=PolicySpec(suspended=True))
    assert placed(cycle.run_cycle(under(a_quota(quota("a")), [parked], [cluster()]), NOON)) == ["llama"]


def test_it_uses_the_clusters_the_queue_names():
    rules = a_quota(quota("a", attributes={"cluster-affinity": "south"}))
    plan = cycle.run_cycle(under(rules, [mine()], [cluster("north"), cluster("south", [node(4)])]), NOON)
    spot = plan.placed[0].placement
    assert spot.cluster == "south" and spot.verdicts[1].code is Code.NOT_SELECTED
    assert "queue root/a" in spot.verdicts[1].message


def leaver(name: str, preemptor, leaf: str = "b") -> AdmittedGang:
    made = mine(name, leaf)
    return AdmittedGang(
        1, made.name, made.charge, 0, NOON, "north", made.total, leaves_for=preemptor.job_id, goes_to="north"
    )


def test_it_keeps_what_is_freed_for_the_claimant_until_all_of_it_is():
    preemptor, thief = mine("preemptor", workers=5), mine("thief", "b", priority=9)
    leaving = leaver("victim", preemptor)
    leaves = [quota("a", {GPU: 6}, {GPU: 6}), quota("b", {GPU: 0}, {GPU: 6})]
    rules = a_quota(*leaves, charges=[leaving.charge], total={**PLENTY, GPU: 6})
    seen = under(rules, [preemptor, thief], [cluster("north", [node(3)])], [leaving])
    assert placed(cycle.run_cycle(seen, NOON)) == []
    assert placed(cycle.run_cycle(replace(seen, evicting=()), NOON)) == ["thief"]


def test_it_keeps_the_freed_place_from_those_under_no_quota_too():
    preemptor, passer_by = mine("preemptor", workers=5), gang("passer-by", priority=9)
    leaving = leaver("victim", preemptor)
    rules = a_quota(quota("a", {GPU: 6}, {GPU: 6}), quota("b"), charges=[leaving.charge], outside="Run")
    seen = under(rules, [preemptor, passer_by], [cluster("north", [node(3)])], [leaving])
    assert placed(cycle.run_cycle(seen, NOON)) == []
    assert placed(cycle.run_cycle(replace(seen, evicting=()), NOON)) == ["passer-by"]


def test_it_keeps_nothing_more_for_one_that_has_had_its_place_and_lost_it_since():
    first, again = mine("first", "b"), mine("again", after_s=1)
    told = [NOON, NOON + timedelta(seconds=1)]
    left = [replace(leaver("gone", again), until=NOON, ordered_at=told[0], cluster="")]
    rules = a_quota(quota("a"), quota("b"))
    seen = under(rules, [first, again], [cluster("north", [node(3)])], left=left)
    assert placed(cycle.run_cycle(seen, NOON)) == ["again"]
    lost = replace(leaver("again", mine("taker")), job_id=again.job_id, until=NOON, ordered_at=told[1], cluster="")
    assert placed(cycle.run_cycle(replace(seen, evicted=(*left, lost)), NOON)) == ["first"]


shapes = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.integers(0, 2)), max_size=14)


@settings(deadline=None)
@given(shapes, st.integers(1, 24), st.integers(0, 12), st.integers(0, 16))
def test_it_is_never_above_max_nor_above_a_cluster_and_accounts_for_everybody(asked, room, high, gpus):
    leaves = [quota(name, {GPU: 0}, {GPU: min(high, room)}) for name in "ab"]
    rules = a_quota(*leaves, total={**PLENTY, GPU: room})
    gangs = [
        mine(f"g{i}", leaf, workers, priority=p, job_id=i) if leaf != "c" else gang(f"g{i}", workers=workers, job_id=i)
        for i, (leaf, workers, p) in enumerate(asked)
    ]
    plan = cycle.run_cycle(under(rules, gangs, [cluster("north", [node(gpus)])]), NOON)
    with rules.ledger.charged(each.gang.charge for each in plan.placed if each.gang.leaf):
        assert all(rules.ledger.used(f"root/{leaf}")[GPU] <= min(high, room) for leaf in "ab")
        assert rules.ledger.used("root")[GPU] <= room
    assert sum(each.gang.total[GPU] for each in plan.placed) <= gpus
    assert len(plan.placed) + len(plan.waits) == len(gangs)
