"""Who is let in: the worked cases of the sources, one by one, and the words of each no.

F = koord-queue elastic_quota_tree_test, Q = koord-queue elasticquota_test, D = derived from their intent; the number is
that of the case in docs/proposals/0003-reclaim.md. One resource, cpu in whole cores, unless said.
"""

import json

import pytest

from quotas.core.accounts.ledger import Charge
from quotas.core.queues.admission import Admitted, Bound, Code, Refused, check_admission
from quotas.core.trees.amounts import of_job
from tests.quotas.core.builders import JOBS, LEND, cpu, ledger, quota

GI = 2**30


def leaf(low, high, total=100, used=0, firm=0):
    """A tree of one leaf, root/a, with something running in it."""
    found = ledger(total, quota("a", low, high))
    if used:
        found.charge(Charge("root/a", of_job(cpu(used))))
    if firm:
        found.charge(Charge("root/a", of_job(cpu(firm)), preemptible=False))
    return found


def says(found, cores, at="root/a", *, preemptible=True):
    return check_admission(found, at, of_job(cpu(cores)), preemptible=preemptible)


def test_it_admits_a_guaranteed_job_within_min_case_1():
    assert says(leaf(1, 10), 1, preemptible=False) == Admitted(borrows=False)  # F1


def test_it_keeps_a_guaranteed_job_waiting_though_max_has_room_case_2_with_min_in_use():
    answer = says(leaf(1, 10, firm=1), 1, preemptible=False)  # F2, with a min that something uses
    assert (answer.code, answer.bound, answer.used, answer.limit) == (Code.QUOTA_EXCEEDED, Bound.MIN, 1000, 1000)


def test_it_never_admits_a_guaranteed_job_without_a_min_case_2():
    answer = says(leaf(0, 10), 3, preemptible=False)  # F2
    assert (answer.code, answer.path, answer.resource) == (Code.NEVER_FITS, "root/a", "cpu")
    assert answer.message == "asks for 3 cpu and can never have it: root/a has min 0 cpu"


def test_it_lets_borrowers_use_min_that_guaranteed_jobs_leave_case_3():
    assert says(leaf(1, 1), 1) == Admitted(borrows=False)  # F3


def test_it_never_admits_more_than_max_case_4():
    assert says(leaf(0, 0), 3).code is Code.NEVER_FITS  # F4


def test_it_counts_fractions_exactly_case_7():
    found = leaf(0, 2, used=1.5)  # Q7
    answer = says(found, 1)
    assert answer.message == "asks for 1 cpu: root/a has max 2 cpu, with 1500m cpu used"
    assert says(found, 0.1) == Admitted(borrows=True)


def test_it_limits_guaranteed_jobs_by_the_number_in_min_case_8_min():
    found = ledger({"cpu": 99, JOBS: 99}, quota("a", {"cpu": 90, JOBS: 15}, {"cpu": 90, JOBS: 99}))
    for _ in range(14):  # Q8: 10 jobs at an oversell rate of 1.5, which is written as 15 here
        found.charge(Charge("root/a", of_job(cpu(1)), preemptible=False))
    assert says(found, 1, preemptible=False) == Admitted(borrows=False)
    found.charge(Charge("root/a", of_job(cpu(1)), preemptible=False))
    answer = says(found, 1, preemptible=False)
    assert (answer.code, answer.bound) == (Code.MAX_JOBS_REACHED, Bound.MIN)


def test_it_limits_any_job_by_the_number_in_max_case_8_max():
    found = ledger(99, quota("a", 0, {"cpu": 99, JOBS: 15}))
    for _ in range(15):  # Q8: the same formula for max
        assert isinstance(says(found, 1), Admitted)
        found.charge(Charge("root/a", of_job(cpu(1))))
    assert says(found, 1).code is Code.MAX_JOBS_REACHED


def test_it_limits_the_number_of_jobs_on_an_ancestor_too():
    found = ledger(9, quota("team", 0, {"cpu": 9, JOBS: 1}, quota("a"), quota("b")))
    found.charge(Charge("root/team/a", of_job(cpu(1))))
    answer = says(found, 1, "root/team/b")
    assert (answer.code, answer.path, answer.message) == (
        Code.MAX_JOBS_REACHED,
        "root/team",
        "asks for 1 job: root/team has max 1 job, with 1 job used",
    )


def test_it_counts_what_is_not_lent_as_used_by_its_owner_case_9():
    lend = {LEND: json.dumps({"cpu": 2, "memory": "4Gi"})}  # Q9
    low = {"cpu": 4, "memory": "8Gi"}
    found = ledger({"cpu": 9, "memory": "9Gi"}, quota("a", low, low, attributes=lend), quota("b"))
    root = found.row["root"]
    assert [found.held.claims[root, found.column[name]] for name in ("cpu", "memory")] == [2000, 4 * GI]
    found.charge(Charge("root/a", of_job(cpu(3))))
    assert found.held.claims[root, found.column["cpu"]] == 3000


def test_it_names_the_ancestor_that_is_full_case_13():
    found = ledger(10, quota("a", 0, 10), quota("b", 0, 10))  # D13
    found.charge(Charge("root/b", of_job(cpu(6))))
    answer = says(found, 5)
    assert (answer.path, answer.asked, answer.used, answer.limit) == ("root", 5000, 6000, 10_000)
    assert says(found, 4) == Admitted(borrows=True)


def test_it_frees_room_at_once_case_13_released():
    found = ledger(10, quota("a", 0, 10), quota("b", 4, 10, attributes={LEND: '{"cpu": 3}'}))
    charge = Charge("root/b", of_job(cpu(6)))  # D13: upstream's ledger lags one update behind
    found.charge(charge)
    assert isinstance(says(found, 5), Refused)
    found.release(charge)
    assert says(found, 9) == Admitted(borrows=True)


def test_it_holds_back_what_an_idle_sibling_does_not_lend_case_13b():
    found = ledger(10, quota("a", 0, 10), quota("b", 4, 10, attributes={LEND: '{"cpu": 1}'}))
    assert says(found, 8).code is Code.NEVER_FITS  # D13b
    assert says(found, 8).message.endswith("root has max 10 cpu, of which 3 cpu are kept back")
    assert says(found, 7) == Admitted(borrows=True)
    found.charge(Charge("root/a", of_job(cpu(7))))
    assert says(found, 1).message.endswith("root has max 10 cpu, with 7 cpu used and 3 cpu kept back")
    assert says(found, 3, "root/b") == Admitted(borrows=False)


def test_it_holds_back_for_a_leaf_against_the_cousins_too():
    inner = quota("team", 5, 10, quota("b", 4, 10, attributes={LEND: "{}"}))
    found = ledger(10, quota("a", 0, 10), inner)
    assert says(found, 7).code is Code.NEVER_FITS
    assert isinstance(says(found, 6), Admitted)


@pytest.mark.parametrize("preemptible", [True, False])
def test_it_tells_that_borrowers_stand_in_the_way_of_a_promise_case_13c(preemptible):
    found = ledger(10, quota("a", 5, 10), quota("b", 5, 10))
    found.charge(Charge("root/b", of_job(cpu(10))))  # D13c: nothing is above max here, reclaim comes first
    answer = says(found, 5, preemptible=preemptible)
    assert (answer.code, answer.path, answer.entitled) == (Code.QUOTA_EXCEEDED, "root", True)
    assert not says(found, 6).entitled


def test_it_is_not_blocked_by_what_it_does_not_ask_for_case_14():
    found = ledger({"cpu": 9, "nvidia.com/gpu": 1}, quota("a"), quota("b"))
    found.charge(Charge("root/b", {"nvidia.com/gpu": 1}))
    assert isinstance(says(found, 1), Admitted)  # D14
    assert isinstance(check_admission(found, "root/a", of_job({"cpu": 1, "nvidia.com/gpu": 0})), Admitted)


def test_it_leaves_alone_what_the_tree_does_not_name():
    found = leaf(1, 1)
    assert isinstance(
        check_admission(found, "root/a", of_job({"cpu": 1, "rdma/hca": 99, "pods": 9}), preemptible=False), Admitted
    )


def test_it_limits_pods_where_the_tree_does():
    found = ledger({"cpu": 9, "pods": 9}, quota("a", 0, {"cpu": 9, "pods": 2}))
    assert check_admission(found, "root/a", of_job({"cpu": 1, "pods": 3})).resource == "pods"


def test_it_answers_even_about_amounts_beyond_counting():
    assert says(leaf(0, 2), 2**80).code is Code.NEVER_FITS
