"""Reclaim between queues that borrow: by fair share, and from a priority on. With published cases of Kueue and Armada."""

from dataclasses import replace
from datetime import timedelta

import pytest

from quotas.core.accounts.ledger import Charge
from quotas.core.reclaiming import borrowers
from quotas.core.reclaiming.candidates import Candidates
from quotas.core.reclaiming.victims import Cause
from quotas.core.simulation import Job, simulate_to_fixpoint
from quotas.core.trees.parsing import parse_tree
from tests.quotas.core.builders import NOON, cpu, ledger, manifest, occupied, quota, running, tree, unit
from tests.quotas.core.rights import anywhere

SHARES = {"reclaim": "FairShare"}


def three(weights=("1", "1", "1"), **root):
    """Kueue's base: three queues with 3 of 9, and one that is promised nothing."""
    leaves = [quota(name, 3, 9, attributes={"weight": each}) for name, each in zip("abc", weights, strict=True)]
    return ledger(9, *leaves, quota("p", 0, 9), attributes={**SHARES, **root})


def units(**counts):
    return {f"{name}{i}": 1 for name, count in counts.items() for i in range(1, count + 1)}


def stopped(found, jobs, claimant, can_place=anywhere, **fields):
    """``jobs``: their size or (size, priority) by name, in the leaf that the name begins with."""
    sizes = {name: each if isinstance(each, tuple) else (each, 0) for name, each in jobs.items()}
    there = occupied(
        found, *(running(name, name[0], size, priority=priority, **fields) for name, (size, priority) in sizes.items())
    )
    before = found.held.copy()
    plan = borrowers.search(found, claimant, lambda: Candidates(found, there), can_place)
    assert (found.held.used == before.used).all() and (found.held.claims == before.claims).all()
    return sorted(victim.key for victim in plan.victims) if plan else []


@pytest.mark.parametrize(
    ("jobs", "asks", "victims"),
    [
        pytest.param(units(a=3, b=5, c=1), ("a", 1), ["b1"], id="from the user using the most"),
        pytest.param(units(a=3, b=3, c=3), ("c", 1), [], id="everyone under nominal"),
        pytest.param(units(a=3, b=5), ("a", 2), [], id="would switch the imbalance"),
        pytest.param({"a1": 2, "b1": 7}, ("a", 5), [], id="the incoming is also huge"),
        pytest.param({"b1": 2, "b2": 2, "b3": 3}, ("a", 6), [], id="2 smaller and the incoming is huge"),
        pytest.param({"b1": 2, "b2": 1, "b3": 2, "c1": 1}, ("a", 3.5), ["b2"], id="not make it the biggest share"),
        pytest.param({"b1": 2, "b2": 2.5, "c1": 2, "c2": 2.5}, ("a", 3.5), ["b1", "c1"], id="from different queues"),
        pytest.param({"a1": 3.5, "b2": 2.5, "c2": 2.5}, ("b", 2), [], id="scenario above does not flap"),
        pytest.param({"b1": (3, 300), "b2": 3, "c1": 3}, ("a", 4), [], id="under nominal after one element"),
        pytest.param(
            {**units(a=3, b=3), "p1": (1, -3), "p2": (1, -3), "p3": (1, -3)}, ("a", 2), [], id="not capriciously"
        ),
        pytest.param({"a1": 3, "b1": (5, 0), "b2": (1, 1)}, ("a", 1), ["b2"], id="does not transfer the imbalance"),
    ],
)
def test_it_stops_whom_kueue_stops(jobs, asks, victims):
    assert stopped(three(), jobs, unit("incoming", *asks)) == victims


@pytest.mark.parametrize(
    ("weights", "asks", "victims"),
    [("211", 2, ["b1", "b2"]), ("101", 3, ["b1", "b2", "b3"])],
    ids=["higher weight takes more", "anything of weight 0"],
)
def test_it_compares_by_weight_as_kueue_does(weights, asks, victims):
    assert stopped(three(weights), units(a=3, b=6), unit("incoming", "a", asks)) == victims


def test_it_takes_nothing_within_the_min_of_a_queue_of_weight_0():
    assert stopped(three("101"), units(a=3, b=3, c=3), unit("incoming", "a", 1)) == []


def test_it_asks_the_nearest_ancestor_first_as_in_kueue_s_hierarchical_case():
    left = quota(
        "l", 7, 20, quota("a", 1, 20, attributes={"weight": "2"}), quota("b", 1, 20), attributes={"weight": "2"}
    )
    right = quota("r", 7, 20, quota("d", 1, 20), quota("e", 1, 20, attributes={"weight": "0.99"}))
    found = ledger(20, left, quota("c", 1, 20), right, attributes=SHARES)
    paths = {"b": "l/b", "c": "c", "d": "r/d", "e": "r/e"}
    there = occupied(found, *(running(f"{name}{i}", paths[name], priority=i) for name in "bcde" for i in range(1, 6)))
    plan = borrowers.search(found, unit("incoming", "l/a", 5), lambda: Candidates(found, there), anywhere)
    assert sorted(victim.key for victim in plan.victims) == ["b1", "b2", "c1", "c2", "e1"]


def settle(found, jobs):
    settled = simulate_to_fixpoint(found, jobs.values(), NOON)
    jobs |= {key: settled.running.get(key) or replace(job, started_at=None) for key, job in jobs.items()}
    jobs |= {
        key: replace(job, unit=replace(job.unit, has_claimed=True))
        for key, job in jobs.items()
        if key in settled.claimed
    }
    return settled


@pytest.mark.parametrize(
    ("weights", "shares"),
    [("11", [(32, 0), (16, 16)]), ("111", [(32, 0, 0), (16, 16, 0), (11, 11, 10)]), ("21", [(32, 0), (22, 10)])],
    ids=["balancing two queues", "balancing three queues", "balancing two queues weighted"],
)
def test_it_levels_as_armada_does(weights, shares):
    """Jobs of 1 on one node of 32; each queue submits 32, one after the other. Armada has 21 and 11 where we have 22 and 10:
    an eviction that changes nothing but whose share is the larger one is not made."""
    names = "abc"[: len(weights)]
    leaves = [quota(name, 0, 32, attributes={"weight": each}) for name, each in zip(names, weights, strict=True)]
    found, jobs = ledger(32, *leaves, attributes=SHARES), {}
    for name, expected in zip(names, shares, strict=True):
        jobs |= {f"{name}{i}": Job(unit(f"{name}{i}", name, after_s=i)) for i in range(32)}
        settle(found, jobs)
        assert tuple(found.used(f"root/{each}")["cpu"] // 1000 for each in names) == expected
    assert settle(found, jobs).reclaims == []


def test_it_is_off_where_nothing_is_stated_and_below_a_node_that_states_min():
    assert stopped(three(reclaim="Min"), units(a=3, b=5, c=1), unit("incoming", "a", 1)) == []
    team = quota("t", 0, 8, quota("a", 0, 8), quota("b", 0, 8), attributes={"reclaim": "Min"})
    found = ledger(8, team, quota("c", 0, 8), attributes=SHARES)
    there = occupied(found, *(running(f"b{i}", "t/b") for i in range(8)))
    assert borrowers.search(found, unit("x", "t/a"), lambda: Candidates(found, there), anywhere) is None
    other = borrowers.search(found, unit("x", "c"), lambda: Candidates(found, there), anywhere)
    assert [victim.cause for victim in other.victims] == [Cause.FAIR_SHARE]


def test_it_says_what_both_borrow():
    found = three()
    there = occupied(found, *(running(name, name[0], size) for name, size in units(a=3, b=5, c=1).items()))
    plan = borrowers.search(found, unit("incoming", "a", 1), lambda: Candidates(found, there), anywhere)
    assert plan.victims[0].message == "root/b borrows a share of 22.2 % by its weight, and root/a would borrow 11.1 %"


def test_a_job_has_this_right_once():
    claimant = replace(unit("incoming", "a", 1), has_claimed=True)
    assert stopped(three(), units(a=3, b=5, c=1), claimant) == []


def test_it_does_not_stop_the_job_that_it_was_stopped_for():
    claimant = replace(unit("incoming", "a", 1), stopped_for="b1")
    assert stopped(three(), units(a=3, b=5, c=1), claimant) == ["b2"]


def test_a_queue_that_preempts_by_priority_has_no_such_right_and_gives_as_any_other():
    leaves = [
        quota(name, 0, 9, attributes={"preempt-policy": "PreemptLowerPriority"} if name == "a" else {}) for name in "ab"
    ]
    assert stopped(ledger(9, *leaves, attributes=SHARES), units(b=9), unit("incoming", "a", 1)) == []
    assert stopped(ledger(9, *leaves, attributes=SHARES), units(a=9), unit("incoming", "b", 1)) == ["a1"]


@pytest.mark.parametrize(("asks", "victims"), [(2, []), (3, ["b1"])])
def test_it_stops_no_gang_of_four_times_the_size(asks, victims):
    found = ledger(16, quota("a", 0, 16), quota("b", 0, 16), attributes=SHARES)
    assert stopped(found, {"b1": 8, "b2": 8}, unit("x", "a", asks)) == victims


def test_it_leaves_a_gang_whose_room_would_mostly_go_to_others_of_the_same_side():
    """a would borrow 2, and with the 2 that are left over as much as b did."""
    found = ledger(8, quota("a", 0, 8), quota("b", 0, 8), quota("c", 4, 8), attributes=SHARES)
    assert stopped(found, {"b1": 4, "c1": 4}, unit("x", "a", 2)) == []


def test_it_leaves_a_job_that_would_come_straight_back_by_the_min_of_its_queue():
    """With both gone b would be within its min of 1 with the first of them, and stop the claimant for it."""
    leaves = [quota(name, 1, 3, attributes={"weight": weight}) for name, weight in (("a", "2"), ("b", "0.5"))]
    assert stopped(ledger(3, *leaves, attributes=SHARES), {"b1": 1, "b2": 2}, unit("x", "a", 3)) == []
    assert stopped(ledger(3, *leaves, attributes=SHARES), {"b1": 1, "b2": 2}, unit("x", "a", 2)) == ["b2"]


def test_it_leaves_what_is_within_its_min_runtime():
    until = NOON + timedelta(minutes=9)
    assert stopped(three(), units(a=3, b=5, c=1), unit("incoming", "a", 1), protected_until=until) == []


def test_it_stops_nobody_for_a_job_that_no_cluster_would_hold():
    assert stopped(three(), units(a=3, b=5, c=1), unit("incoming", "a", 1), lambda gone: False) == []


def test_it_looks_no_further_where_four_times_the_size_makes_no_place():
    """Else a claimant that no cluster would hold would have the whole fleet looked through, one job after the other."""
    asked = []
    found = ledger(64, quota("a", 0, 64), quota("b", 0, 64), attributes=SHARES)
    assert stopped(found, units(b=64), unit("x", "a", 2), lambda gone: bool(asked.append(gone))) == []
    assert max(map(len, asked)) == 8


def test_it_makes_room_on_the_clusters_where_only_they_are_full():
    """The quota would allow it: what goes is what the clusters need gone."""
    found = ledger(32, quota("a", 0, 32), quota("b", 0, 32), attributes=SHARES)
    assert stopped(found, {"b1": 2, "b2": 2, "b3": 2}, unit("x", "a", 2), lambda gone: "b2" in gone) == ["b2"]


def test_a_job_that_may_not_be_preempted_borrows_nothing_and_so_claims_nothing():
    firm = replace(unit("incoming", "a", 1), charge=Charge("root/a", cpu(1), preemptible=False))
    assert stopped(three(), units(a=3, b=5, c=1), firm) == []


def test_pods_that_a_job_can_do_without_go_before_any_job():
    found = ledger(8, quota("a", 0, 8), quota("b", 0, 8), attributes=SHARES)
    pods = tuple(("worker", cpu(1)) for _ in range(3))
    there = occupied(
        found, running("b1", "b", 4, surplus=pods), running("b2", "b", 2), running("b3", "b", 2, priority=-1)
    )
    plan = borrowers.search(found, unit("x", "a", 2), lambda: Candidates(found, there), anywhere)
    assert [victim.key.partition("#")[0] for victim in plan.victims] == ["b1", "b1"] and len(plan.victims) == 2


URGENT = {"borrowing-priority": "100", "reclaim": "Min"}


def test_from_a_priority_on_a_job_stops_what_lower_ones_borrow_whatever_the_shares():
    found = three(**URGENT)
    assert stopped(found, {**units(a=5), "b1": (3, 300), "b2": (1, 99)}, unit("incoming", "a", 1, priority=100)) == [
        "b2"
    ]
    assert (
        stopped(three(**URGENT), {**units(a=5), "b1": (3, 300), "b2": (1, 99)}, unit("incoming", "a", 1, priority=99))
        == []
    )
    assert (
        stopped(three(**URGENT), {**units(a=5), "b1": (3, 300), "b2": (1, 100)}, unit("incoming", "a", 1, priority=200))
        == []
    )


def test_priority_takes_nothing_that_is_within_a_min():
    assert stopped(three(**URGENT), units(a=3, b=3, c=3), unit("incoming", "a", 1, priority=100)) == []


def test_no_share_takes_from_such_a_job_for_one_below():
    found = {**URGENT, **SHARES}
    jobs = {**units(a=3), **{f"b{i}": (1, 100) for i in range(6)}}
    assert stopped(three(**found), jobs, unit("incoming", "a", 1)) == []
    assert len(stopped(three(**found), jobs, unit("incoming", "a", 1, priority=100))) == 1


@pytest.mark.parametrize(
    ("attributes", "fault"),
    [
        ({"reclaim": "Fair"}, "must be one of Min, FairShare, not 'Fair'"),
        ({"borrowing-priority": "high"}, "must be a whole number up to 2147483647 or Never, not 'high'"),
        ({"borrowing-priority": "3000000000"}, "must be a whole number up to 2147483647 or Never, not '3000000000'"),
    ],
)
def test_it_refuses_what_it_does_not_know(attributes, fault):
    reading = parse_tree(manifest(quota("root", 8, 8, quota("a", 0, 8), attributes=attributes)))
    assert [each.detail for each in reading.faults] == [f"root: {fault}"]


def test_it_inherits_both_and_a_node_may_state_otherwise():
    below = quota("t", 0, 8, quota("a", 0, 8), attributes={"borrowing-priority": "Never", "reclaim": "Min"})
    found = tree(8, below, quota("b", 0, 8), attributes={"borrowing-priority": "5", **SHARES})
    rules = {path: node.attributes for path, node in found.by_path.items()}
    assert [rules[path].borrowing_priority for path in ("root/b", "root/t", "root/t/a")] == [5, None, None]
    assert [rules[path].reclaim for path in ("root/b", "root/t/a")] == ["FairShare", "Min"]


def test_it_refuses_to_give_room_by_one_order_and_to_take_it_by_another():
    leaf = quota("a", 0, 8, attributes={"fair-share": "OverTime"})
    assert parse_tree(manifest(quota("root", 8, 8, leaf, attributes=SHARES))).faults == ()
    both = {**SHARES, "fair-share": "OverTime"}
    (fault,) = parse_tree(manifest(quota("root", 8, 8, quota("a", 0, 8), attributes=both))).faults
    assert fault.field.endswith("attributes.reclaim") and "state reclaim: Min, or fair-share: Now" in fault.detail
