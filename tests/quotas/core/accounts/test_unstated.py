"""A promise of GPUs is one of what a pod with those GPUs needs, where the quota does not state that itself."""

from dataclasses import replace

import pytest

from quotas.core.queues import admission
from quotas.core.queues.fair_share import plan_admission
from quotas.core.reclaiming.reclaim import plan_reclaim
from quotas.core.trees.amounts import of_job
from tests.quotas.core.builders import ledger, names, occupied, quota, running, unit

GPU = "nvidia.com/gpu"
WHOLE = {"cpu": 10, GPU: 10, "pods": 10}


def asks(who, gpus, cores=1, pods=1):
    amounts = of_job({"cpu": cores * 1000, GPU: gpus, "pods": pods})
    return replace(who, charge=replace(who.charge, amounts=amounts))


def taken(found, preemptor, jobs):
    made = plan_reclaim(found, preemptor, jobs, lambda _gone: True)
    return made and [victim.key for victim in made.victims]


@pytest.mark.parametrize("stated", [{"cpu": 3}, {"pods": 3}, {"cpu": 3, "pods": 3}])
def test_a_queue_with_gpus_alone_takes_them_back_where_another_states_more(stated):
    found = ledger(WHOLE, quota("a", {GPU: 5}, WHOLE), quota("b", {GPU: 1, **stated}, WHOLE))
    jobs = occupied(found, *(asks(running(f"b{i}", "b", at_s=i), 5) for i in range(2)))
    mine = asks(unit("mine"), 5)
    assert taken(found, mine, jobs) == ["b1"] and admission.is_promised(found, mine.charge)
    refusal = admission.check_admission(found, "root/a", mine.charge.amounts)
    assert refusal.entitled and admission.promised_below(found, mine.charge, refusal)


@pytest.mark.parametrize("short", ["cpu", "pods"])
def test_it_takes_back_what_its_pods_need_from_who_borrows_that(short):
    whole = {**WHOLE, "cpu": 20, "pods": 20, short: 10}
    found = ledger(whole, quota("a", {GPU: 5}, whole), quota("b", {GPU: 1}, whole))
    jobs = occupied(found, *(asks(running(f"b{i}", "b", at_s=i), 0, 5, 5) for i in range(2)))
    assert taken(found, asks(unit("mine"), 5, 2, 2), jobs) == ["b1"]
    assert taken(found, asks(unit("cores"), 0, 2, 2), jobs) is None


def test_of_two_with_gpus_alone_the_one_within_its_gpus_keeps_its_cpus():
    found = ledger(WHOLE, quota("a", {GPU: 5}, WHOLE), quota("b", {GPU: 5}, WHOLE))
    jobs = occupied(found, asks(running("b0", "b"), 5, 10))
    assert taken(found, asks(unit("mine"), 5, 2), jobs) is None
    more = occupied(found, asks(running("b1", "b"), 1, 0))
    assert taken(found, asks(unit("mine"), 4, 2), jobs + more) == ["b0"]


def test_who_states_cpus_takes_them_back_from_who_only_needs_them_and_not_the_other_way():
    found = ledger(WHOLE, quota("a", {GPU: 5}, WHOLE), quota("b", {"cpu": 8}, WHOLE))
    jobs = occupied(found, asks(running("a0", "a"), 5, 5))
    assert taken(found, asks(unit("cores", "b"), 0, 8), jobs) == ["a0"]
    jobs = occupied(ledger_b := found, asks(running("b0", "b"), 0, 5))
    assert taken(ledger_b, asks(unit("mine"), 5, 5), jobs) is None


def test_a_stated_none_is_none():
    found = ledger(WHOLE, quota("a", {GPU: 5, "cpu": 0}, WHOLE), quota("b", {"cpu": 9}, WHOLE))
    jobs = occupied(found, asks(running("b0", "b"), 10))
    assert taken(found, asks(unit("mine"), 5), jobs) is None


def test_cpus_promise_no_gpus():
    found = ledger(WHOLE, quota("a", {"cpu": 5}, WHOLE), quota("b", {GPU: 5}, WHOLE))
    jobs = occupied(found, asks(running("b0", "b"), 10, 10))
    assert taken(found, asks(unit("mine"), 1, 5), jobs) is None
    assert taken(found, asks(unit("cores"), 0, 5), jobs) == ["b0"]


def test_the_queue_within_its_gpus_comes_first():
    whole = {**WHOLE, GPU: 4}
    found = ledger(whole, quota("a", {GPU: 4}, whole), quota("b", {"cpu": 4}, whole))
    early = asks(unit("early", "b"), 4, 0)
    assert names(plan_admission(found, [early, asks(unit("late", "a", after_s=9), 4)]).admitted) == ["late"]
