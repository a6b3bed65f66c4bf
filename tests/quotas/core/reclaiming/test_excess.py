"""Use above a lowered limit: which jobs are evicted for it, and in which order."""

from dataclasses import replace

import pytest

from quotas.core.reclaiming.excess import find_overruns, plan_evictions, takes_back
from tests.quotas.core.builders import ledger, occupied, quota, running

GPU = "nvidia.com/gpu"
TAKES = {"attributes": {"excess": "TakeBack"}}


def evicted(found, *jobs):
    occupied(found, *jobs)
    return [surplus.job.key for surplus in plan_evictions(found, jobs)]


def test_it_evicts_nothing_within_the_limits_or_where_the_policy_is_another():
    jobs = [running(f"j{i}", cores=2) for i in range(3)]
    assert evicted(ledger(10, quota("a", 0, 6), **TAKES), *jobs) == []
    for policy in ("Refuse", "Wait"):
        assert evicted(ledger(10, quota("a", 0, 4, attributes={"excess": policy})), *jobs) == []


def test_it_evicts_the_lowest_priority_first_and_of_one_priority_what_loses_least():
    found = ledger(20, quota("a", 0, 6, **TAKES))
    jobs = (
        running("low", cores=2, priority=0, lost_s=9000),
        running("new", cores=3, priority=1, lost_s=10),
        running("old", cores=3, priority=1, lost_s=9000),
        running("high", cores=2, priority=2),
    )
    assert evicted(found, *jobs) == ["low", "new"]


def test_it_evicts_no_gang_of_four_times_what_is_too_much_while_smaller_ones_would_do():
    found = ledger(99, quota("a", 0, 40, **TAKES))
    jobs = (running("giant", cores=20, lost_s=0), *(running(f"s{i}", cores=1, lost_s=9000) for i in range(22)))
    assert sorted(evicted(found, *jobs)) == ["s0", "s1"]


def test_it_inherits_the_policy_and_a_child_may_state_another():
    found = ledger(20, quota("t", 0, 9, quota("a", 0, 2), quota("b", 0, 2, attributes={"excess": "Wait"})), **TAKES)
    assert evicted(found, running("in-a", "t/a", 3), running("in-b", "t/b", 3)) == ["in-a"]


def test_it_takes_nothing_from_a_queue_within_its_min():
    found = ledger(8, quota("a", 4, 8), quota("b", 4, 8), **TAKES)
    jobs = (running("a1", "a", 4, priority=-9), running("b1", "b", 4, at_s=1), running("b2", "b", 4, at_s=2))
    assert evicted(found, *jobs) == ["b2"]


def test_it_counts_what_goes_for_a_child_for_its_parents_too():
    found = ledger(20, quota("t", 0, 9, quota("a", 0, 4), quota("b", 0, 9)), **TAKES)
    assert evicted(found, running("a1", "t/a", 4), running("a2", "t/a", 4, at_s=1), running("b1", "t/b", 5)) == ["a2"]


def test_it_lets_stay_what_a_later_choice_makes_unnecessary():
    found = ledger({"cpu": 20, GPU: 9}, quota("a", {}, {"cpu": 4, GPU: 1}, **TAKES))
    small, large = running("small", cores=0), running("large", cores=5, lost_s=9000)
    jobs = [replace(job, charge=replace(job.charge, amounts={**job.charge.amounts, GPU: 1})) for job in (small, large)]
    assert evicted(found, *jobs) == ["large"]


@pytest.mark.parametrize("total", [4, 7])
def test_it_evicts_no_job_that_may_not_be_preempted_and_says_that_it_cannot(total):
    found = ledger(total, quota("a", 0, total), **TAKES)
    jobs = [running("firm", cores=5, preemptible=False), running("soft", cores=3)]
    assert evicted(found, *jobs) == ["soft"]
    refused = {overrun.bound: overrun.is_refused for overrun in find_overruns(found)}
    assert refused["min"] and refused["max"] is (total == 4)


def test_it_leaves_the_ledger_as_it_was():
    found = ledger(20, quota("a", 0, 4, **TAKES))
    jobs = occupied(found, *(running(f"j{i}", cores=2, at_s=i) for i in range(4)))
    before = found.held.copy()
    assert takes_back(found) and [one.job.key for one in plan_evictions(found, jobs)] == ["j3", "j2"]
    assert (found.held.used == before.used).all() and (found.held.claims == before.claims).all()
