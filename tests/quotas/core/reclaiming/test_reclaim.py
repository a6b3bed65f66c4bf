"""Whom a job below its min takes back from, in which order, and when nobody is stopped.

K = Kueue's preemption tables, C = CapacityScheduling, R = KAI, D = derived from the sources' intent, S = koord-queue
preempt_test; numbers as in docs/proposals/0002-quotas.md.
"""

import json
from dataclasses import replace

import pytest

from quotas.core.reclaiming.reclaim import plan_reclaim
from quotas.core.reclaiming.victims import Cause
from quotas.core.trees.amounts import of_job
from tests.quotas.core.builders import JOBS, LEND, NOON, ledger, occupied, quota, running, unit

PREEMPTS = {"preempt-policy": "PreemptLowerPriority"}


def anywhere(_gone):
    return True


def taken(found, preemptor, jobs, can_place=anywhere):
    made = plan_reclaim(found, preemptor, jobs, can_place)
    return None if made is None else [victim.key for victim in made.victims]


@pytest.fixture
def halves():
    """a and b are promised 5 of 10 each."""
    return ledger(10, quota("a", 5, 10), quota("b", 5, 10))


@pytest.mark.parametrize("preemptible", [True, False])
def test_it_takes_back_what_was_borrowed_case_13c(halves, preemptible):
    jobs = occupied(halves, *(running(f"b{i}", "b", 1, at_s=i) for i in range(10)))
    preemptor = unit("claims", cores=5, preemptible=preemptible)  # D13c, both halves
    assert taken(halves, preemptor, jobs) == ["b9", "b8", "b7", "b6", "b5"]


def test_it_says_who_is_above_its_min_and_by_how_much(halves):
    jobs = occupied(halves, running("b0", "b", 5), running("b1", "b", 3, at_s=1))
    made = plan_reclaim(halves, unit("claims", cores=4), jobs, anywhere)
    assert [(each.path, each.resource, each.over) for each in made.victims] == [("root/b", "cpu", 3000)]
    assert made.victims[0].message == "root/b is 3 cpu above its min"
    assert made.freed == {"cpu": 3000, JOBS: 1}


def test_it_leaves_the_ledger_as_it_was(halves):
    jobs = occupied(halves, running("b0", "b", 10))
    before = halves.held.copy()
    assert taken(halves, unit("claims", cores=5), jobs) == ["b0"]
    assert (halves.held.used == before.used).all()


def test_it_takes_nothing_for_one_who_wants_to_borrow(halves):
    jobs = occupied(halves, running("b0", "b", 10))
    assert taken(halves, unit("greedy", cores=6, priority=99), jobs) is None


def test_it_takes_nothing_that_is_not_needed(halves):
    jobs = occupied(halves, running("b0", "b", 2))
    assert taken(halves, unit("fits", cores=5), jobs) == []


def test_it_never_takes_what_was_promised(halves):
    jobs = occupied(halves, running("a0", "a", 5), running("b0", "b", 5))
    assert taken(halves, unit("claims", cores=1, priority=99), jobs) is None  # C: used + asked > min


def test_it_does_not_compare_priorities_across_queues(halves):
    jobs = occupied(halves, running("b0", "b", 10, priority=99))
    assert taken(halves, unit("claims", cores=5), jobs) == ["b0"]  # C


def test_it_takes_a_gang_whole_though_it_straddles_the_min(halves):
    jobs = occupied(halves, running("gang", "b", 9), running("small", "a", 1))
    assert taken(halves, unit("claims", cores=4), jobs) == ["gang"]


def test_it_takes_the_lowest_priority_then_the_least_work_lost(halves):
    jobs = occupied(
        halves,
        running("high", "b", 2, priority=5, at_s=90, elastic=True),
        running("old", "b", 2),
        running("new", "b", 2, at_s=60),
        running("saved", "b", 2, checkpointed=True),
        running("elastic", "b", 2, elastic=True),
    )
    assert taken(halves, unit("claims", cores=2), jobs) == ["elastic"]
    assert taken(halves, unit("claims", cores=4), jobs) == ["elastic", "saved"]
    assert taken(halves, unit("claims", cores=5), jobs) == ["elastic", "saved", "new"]


def test_it_puts_back_what_turned_out_unnecessary(halves):
    jobs = occupied(halves, running("small", "b", 2, at_s=9), running("large", "b", 6, at_s=1))
    assert taken(halves, unit("claims", cores=5), jobs) == ["large"]  # K: greedy, then the reverse pass


def test_it_never_stops_a_job_that_may_not_be_preempted(halves):
    firm = running("firm", "b", 5, preemptible=False, at_s=60)
    jobs = occupied(halves, firm, running("loose", "b", 5))
    assert taken(halves, unit("claims", cores=5), jobs) == ["loose"]
    assert taken(halves, unit("claims", cores=5), [firm]) is None


def test_it_cannot_be_taken_back_from_the_claimant(halves):
    gang = running("gang", "b", 10)
    assert taken(halves, unit("claims", cores=5), occupied(halves, gang)) == ["gang"]
    halves.release(gang.charge)
    now = occupied(halves, running("claims", "a", 5))
    assert taken(halves, unit("gang", "b", 10), now) is None  # no flap


def test_it_stops_nobody_for_a_gang_that_no_cluster_can_host(halves):
    jobs = occupied(halves, running("b0", "b", 10))
    assert taken(halves, unit("claims", cores=5), jobs, lambda gone: False) is None


def test_it_takes_the_place_that_borrowers_hold_though_the_quota_has_room():
    found = ledger(100, quota("a", 5, 100), quota("b", 5, 100))
    jobs = occupied(found, *(running(f"b{i}", "b", 4, at_s=i) for i in range(3)))
    assert taken(found, unit("claims", cores=5), jobs, lambda gone: "b1" in gone) == ["b1"]
    assert taken(found, unit("claims", cores=6), jobs, lambda gone: "b1" in gone) is None


def test_it_takes_no_place_from_those_within_their_min():
    found = ledger(100, quota("a", 5, 100), quota("b", 50, 100))
    jobs = occupied(found, running("b0", "b", 40))
    assert taken(found, unit("claims", cores=5), jobs, lambda gone: bool(gone)) is None


def test_it_takes_from_the_sister_who_borrows_from_the_claimant_though_the_team_is_full():
    team = quota("team", 5, 10, quota("x", 5, 10), quota("y", 0, 10))
    found = ledger(10, team, quota("b", 5, 10))
    jobs = occupied(found, running("sister", "team/y", 5), running("other", "b", 5, at_s=9))
    assert taken(found, unit("claims", "team/x", 5), jobs) == ["sister"]


def test_it_spares_a_borrower_whose_team_stays_within_its_min():
    team = quota("team", 5, 10, quota("x", 0, 10), quota("y", 5, 10))
    found = ledger(10, team, quota("a", 2, 10), quota("b", 3, 10))
    jobs = occupied(found, running("kin", "team/x", 5, at_s=9), running("stranger", "b", 5))
    assert taken(found, unit("claims", "a", 2), jobs) == ["stranger"]  # K: each subtree up to the common ancestor


def test_it_takes_what_a_team_was_promised_for_any_of_its_leaves():
    found = ledger(10, quota("team", 5, 10, quota("x"), quota("y")), quota("b", 5, 10))
    jobs = occupied(found, running("b0", "b", 10))
    assert taken(found, unit("claims", "team/x", 5), jobs) == ["b0"]


GPU = "nvidia.com/gpu"
BOTH = {"cpu": 10, GPU: 10}


def asks(preemptor, cores, gpus):
    amounts = of_job({"cpu": cores * 1000, GPU: gpus})
    return replace(preemptor, charge=replace(preemptor.charge, amounts=amounts))


@pytest.mark.parametrize(("gpus_of_sibling", "leave"), [(1, ["sibling"]), (0, ["sibling", "other"])])
def test_it_clears_its_own_side_of_what_is_borrowed_when_that_alone_gives_it_its_right(gpus_of_sibling, leave):
    found = ledger(
        {"cpu": 9, GPU: 4},
        quota(
            "side",
            {"cpu": 1, GPU: 3},
            {"cpu": 9, GPU: 4},
            quota("mine", {"cpu": 1, GPU: 2}, {"cpu": 9, GPU: 4}),
            quota("sibling", {GPU: 1}, {"cpu": 9, GPU: 4}),
        ),
        quota("other", {}, {"cpu": 9, GPU: 4}),
    )
    others = 3 - gpus_of_sibling  # the GPUs are short, and the sibling has borrowed nothing but cores
    jobs = occupied(
        found, asks(running("sibling", "side/sibling"), 4, gpus_of_sibling), asks(running("other", "other"), 4, others)
    )
    assert taken(found, asks(unit("claims", "side/mine"), 1, 2), jobs) == leave


def test_it_takes_only_from_those_who_hold_what_is_short():
    found = ledger(BOTH, quota("a", {"cpu": 2, GPU: 5}, BOTH), quota("b", {"cpu": 1}, BOTH))
    jobs = occupied(found, asks(running("cpu", "b", at_s=9), 5, 0), asks(running("gpu", "b"), 0, 10))
    assert taken(found, asks(unit("claims"), 2, 5), jobs) == ["gpu"]


def test_it_takes_nothing_for_one_resource_while_it_would_borrow_another_that_is_promised():
    found = ledger(BOTH, quota("a", {GPU: 5, "cpu": 0}, BOTH), quota("b", {"cpu": 9}, BOTH))
    jobs = occupied(found, asks(running("gpu", "b"), 0, 10))
    assert taken(found, asks(unit("claims"), 2, 5), jobs) is None
    assert taken(found, asks(unit("claims"), 0, 5), jobs) == ["gpu"]


def test_it_does_not_mind_borrowing_what_is_promised_to_nobody():
    found = ledger(BOTH, quota("a", {GPU: 5}, BOTH), quota("b", {GPU: 5}, BOTH))
    jobs = occupied(found, asks(running("gpu", "b"), 1, 10))
    assert taken(found, asks(unit("claims"), 2, 5), jobs) == ["gpu"]


def test_it_reclaims_past_what_an_idle_sibling_keeps_back():
    keeps = quota("c", 2, 10, attributes={LEND: json.dumps({"cpu": 0})})
    found = ledger(10, quota("a", 5, 10), quota("b", 3, 10), keeps)
    jobs = occupied(found, *(running(f"b{i}", "b", 2, at_s=i) for i in range(4)))
    assert taken(found, unit("claims", cores=5), jobs) == ["b3", "b2", "b1"]


def test_it_counts_what_a_borrowers_sister_keeps_back_against_the_borrower():
    keeps = quota("idle", 3, 10, attributes={LEND: "{}"})
    found = ledger(10, quota("team", 6, 10, quota("x", 0, 10), keeps), quota("b", 4, 10))
    jobs = occupied(found, running("x0", "team/x", 6))
    made = plan_reclaim(found, unit("claims", "b", 4), jobs, anywhere)
    assert [(each.key, each.path, each.over) for each in made.victims] == [("x0", "root/team", 3000)]


def test_it_preempts_in_its_queue_to_swap_what_is_borrowed_and_not_to_borrow_more():
    found = ledger(10, quota("a", 0, 10, attributes=PREEMPTS), quota("b", 5, 10))
    jobs = occupied(found, running("low", cores=3), running("low2", cores=3, at_s=9), running("b0", "b", 2))
    assert taken(found, unit("high", cores=3, priority=9), jobs) == ["low2"]
    assert taken(found, unit("high", cores=6, priority=9), jobs) == ["low2", "low"]
    assert taken(found, unit("high", cores=7, priority=9), jobs) is None


def test_it_preempts_in_its_queue_for_whatever_that_queue_was_promised():
    found = ledger(10, quota("a", 4, 4, attributes=PREEMPTS), quota("b"))
    jobs = occupied(found, running("low", cores=2))
    assert taken(found, unit("high", cores=4, priority=9), jobs) == ["low"]


def test_it_preempts_lower_priorities_of_its_own_queue_where_the_policy_says_so_case_21_both_low():
    found = ledger(10, quota("a", 0, 4, attributes=PREEMPTS), quota("b"))
    jobs = occupied(found, running("low", cores=2, priority=1), running("low2", cores=2, priority=1, at_s=9))
    made = plan_reclaim(found, unit("high", cores=4, priority=100), jobs, anywhere)  # S21: both low ones
    assert [victim.cause for victim in made.victims] == [Cause.LOWER_PRIORITY] * 2
    assert made.victims[0].message == "has a lower priority in root/a, which preempts by priority"


def test_it_preempts_the_newest_of_the_low_ones_and_no_more_case_21_newest_low():
    found = ledger(10, quota("a", 0, 8, attributes=PREEMPTS), quota("b"))
    low = [running("low", cores=2, priority=1), running("low2", cores=2, priority=1, at_s=9)]
    jobs = occupied(found, running("high", cores=4, priority=100), *low)
    assert taken(found, unit("mid", cores=2, priority=50), jobs) == ["low2"]  # S21


def test_it_never_preempts_an_equal_or_higher_priority_case_21_none():
    found = ledger(10, quota("a", 0, 4, attributes=PREEMPTS), quota("b"))
    jobs = occupied(found, running("high", cores=4, priority=100))
    assert taken(found, unit("same", cores=4, priority=100), jobs) is None  # S21: no victims


def test_it_preempts_the_one_in_flight_for_a_higher_priority_only_case_20():
    found = ledger(10, quota("a", 0, {"cpu": 10, JOBS: 1}, attributes=PREEMPTS))
    jobs = occupied(found, running("assumed", priority=12))  # S20: one at a time is max-jobs 1 here
    assert taken(found, unit("higher", priority=13), jobs) == ["assumed"]
    assert taken(found, unit("lower", priority=10), jobs) is None


def test_it_leaves_its_own_queue_alone_without_that_policy():
    found = ledger(10, quota("a", 0, 4), quota("b"))
    jobs = occupied(found, running("low", cores=4))
    assert taken(found, unit("high", cores=4, priority=9), jobs) is None


def test_it_takes_from_borrowers_before_its_own_queue():
    found = ledger(10, quota("a", 6, 10, attributes=PREEMPTS), quota("b", 2, 10))
    jobs = occupied(found, running("own", cores=2), running("b0", "b", 8, priority=50))
    assert taken(found, unit("high", cores=4, priority=9), jobs) == ["b0"]  # K: other queues before its own


def test_it_frees_a_job_count_only_within_the_queue():
    low = quota("a", 0, {"cpu": 10, JOBS: 1}, attributes=PREEMPTS)
    found = ledger(10, low, quota("b"))
    jobs = occupied(found, running("low"), running("b0", "b", 5))
    assert taken(found, unit("high", priority=1), jobs) == ["low"]


def test_it_takes_nothing_for_what_can_never_be(halves):
    jobs = occupied(halves, running("b0", "b", 10))
    assert taken(halves, unit("huge", cores=11), jobs) is None
    assert taken(halves, unit("firm", cores=6, preemptible=False), jobs) is None


def test_it_makes_the_same_plan_whatever_the_order_of_its_input(halves):
    jobs = occupied(halves, *(running(f"b{i}", "b", 1) for i in range(10)))
    assert taken(halves, unit("claims", cores=3), jobs) == taken(halves, unit("claims", cores=3), jobs[::-1])
    assert jobs[0].started_at == NOON
