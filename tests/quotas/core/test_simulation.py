"""Where admission and reclaim come to rest together: what each leaves to the other, and who is never asked.

F = koord-queue elastic_quota_tree_test, S = its preempt_test, D = derived; numbers as in docs/proposals/0003-reclaim.md.
"""

from datetime import timedelta

from quotas.core.queues.fair_share import Behind
from quotas.core.simulation import Job, NoPlace, simulate_to_fixpoint
from tests.quotas.core.builders import NOON, ledger, quota, unit

LATER = NOON + timedelta(hours=1)
PREEMPTS = {"preempt-policy": "PreemptLowerPriority"}


def rest(found, *jobs, **fields):
    return simulate_to_fixpoint(found, jobs, LATER, **fields)


def runs(found, *units, at=NOON):
    """Charged, and running."""
    for each in units:
        found.charge(each.charge)
    return [Job(each, at) for each in units]


def test_it_counts_a_unit_once_from_reserve_to_completion_case_6():
    found = ledger(9, quota("a"))
    made = rest(found, Job(unit("x", cores=2)))  # F6: reserved, then seen to run
    rest(found, *made.running.values())
    assert found.used("root/a")["cpu"] == 2000


def test_it_gives_back_a_promise_and_queues_the_borrower_again_case_13c():
    found = ledger(10, quota("a", 5, 10), quota("b", 5, 10))
    made = rest(found, *runs(found, unit("lent", "b", 10)), Job(unit("claims", "a", 5)))  # D13c
    assert made.running.keys() == {"claims"}
    assert [each.name for each, _ in made.waits] == ["lent"]
    assert made.running["claims"].started_at == LATER


def test_it_gives_what_a_straddling_gang_leaves_behind_to_whoever_fits():
    found = ledger(10, quota("a", 5, 10), quota("b", 5, 10))
    small = Job(unit("small", "b", 4, after_s=9))
    made = rest(found, *runs(found, unit("gang", "b", 10)), small, Job(unit("claims", "a", 5)))
    assert made.running.keys() == {"claims", "small"}


def test_it_never_lets_one_behind_a_blocked_head_preempt_case_22():
    blocks = {**PREEMPTS, "queue-policy": "Block"}
    found = ledger(10, quota("a", 0, 4, attributes=blocks))
    low = runs(found, unit("low", "a", 2))
    made = rest(found, *low, Job(unit("huge", "a", 9, priority=9)), Job(unit("behind", "a", 4, priority=5)))
    assert made.running.keys() == {"low"} and made.reclaims == []  # S22
    assert [type(answer) for each, answer in made.waits if each.name == "behind"] == [Behind]


def test_it_waits_for_a_place_without_disturbing_those_who_stay_within_their_min():
    found = ledger(10, quota("a", 5, 10), quota("b", 5, 10))
    full = {"places": lambda unit, running, gone: len(running) - len(gone) < 1}
    made = rest(found, *runs(found, unit("b0", "b", 5)), Job(unit("waits", "a", 5)), **full)
    assert made.reclaims == [] and [answer for _, answer in made.waits] == [NoPlace()]


def test_it_makes_one_claimant_after_the_other_content():
    found = ledger(10, quota("a", 3, 10), quota("c", 3, 10), quota("b", 2, 10))
    lent = runs(found, *(unit(f"b{i}", "b", 1) for i in range(10)))
    made = rest(found, *lent, Job(unit("a0", "a", 3)), Job(unit("c0", "c", 3)))
    assert {"a0", "c0"} <= made.running.keys()
    assert [len(each.victims) for each in made.reclaims] == [3, 3]
