"""What another tree would do to the jobs of now, told before anybody saves it."""

from datetime import timedelta

import pytest

from quotas.core.impact import Effect, Side, compute_effect
from quotas.core.queues.admission import Bound
from tests.quotas.core.builders import NOON, quota, running, tree, unit

LATER = NOON + timedelta(hours=1)


def side(found, jobs=(), waiting=()):
    return Side(found, jobs, waiting)


def told(lines):
    return [line.job for line in lines]


@pytest.fixture
def lent():
    """b runs on all of 10 cores, two of which it was promised; a has one job that waits."""
    jobs = [running(f"b{i}", "b", 2, at_s=i) for i in range(5)]
    return jobs, [unit("waits", "a", 4)]


def promising(cores):
    return tree(10, quota("a", cores, 10), quota("b", 2, 10))


def test_it_changes_nothing_where_nothing_changes(lent):
    one = side(promising(0), *lent)
    assert compute_effect(one, one, LATER) == Effect()


def test_it_tells_who_starts_and_at_whose_expense(lent):
    effect = compute_effect(side(promising(0), *lent), side(promising(4), *lent), LATER)
    assert (told(effect.starts), told(effect.reclaimed)) == (["waits"], ["b4", "b3"])
    assert effect.reclaimed[0].message == "root/b is 8 cpu above its min: makes room for waits"
    assert effect.reclaimed[0].code == "AboveMin"


def test_it_tells_who_would_wait_and_why():
    before, after = tree(10, quota("a", 0, 10)), tree(10, quota("a", 0, 3))
    waiting = [unit("small", cores=2), unit("large", cores=4)]
    effect = compute_effect(side(before, (), waiting), side(after, (), waiting), LATER)
    [line] = effect.waits
    assert (line.job, line.code, line.leaf) == ("large", "NeverFits", "root/a")
    assert line.message == "asks for 4 cpu and can never have it: root/a has max 3 cpu"


def test_it_does_not_claim_what_would_happen_anyway(lent):
    jobs, waiting = lent
    before = side(promising(4), jobs, waiting)
    after = side(tree(10, quota("a", 4, 10), quota("b", 3, 10)), jobs, waiting)
    assert compute_effect(before, after, LATER) == Effect()


def test_it_tells_who_has_no_leaf_any_more_case_29():
    jobs = [running("stays"), running("gone", "b")]  # K29: a node with bound pods is not deleted
    before, after = side(tree(9, quota("a"), quota("b")), jobs), side(tree(9, quota("a")), jobs[:1])
    effect = compute_effect(before, after, LATER)
    assert effect.unbound == ("gone",) and effect.strands


def test_it_tells_who_runs_above_the_new_max():
    jobs = [running("old", cores=3), running("new", cores=3, at_s=9), running("tiny", cores=1)]
    effect = compute_effect(side(tree(10, quota("a")), jobs), side(tree(10, quota("a", 0, 4)), jobs), LATER)
    [excess] = effect.excess
    assert (excess.path, excess.bound, excess.jobs) == ("root/a", Bound.MAX, ("new",))
    assert excess.message == "root/a has max 4 cpu, with 7 cpu used"


def test_it_tells_who_was_guaranteed_and_is_no_longer():
    jobs = [running("firm", cores=3, preemptible=False), running("loose", cores=1)]
    effect = compute_effect(side(tree(10, quota("a", 3, 10)), jobs), side(tree(10, quota("a", 2, 10)), jobs), LATER)
    [excess] = effect.excess
    assert (excess.bound, excess.used, excess.limit, excess.jobs) == (Bound.MIN, 3000, 2000, ("firm",))
    assert excess.message.endswith("has min 2 cpu, with 3 cpu used by jobs that may not be preempted")


def test_it_compares_a_first_tree_with_no_limit_at_all():
    waiting = [unit("fits", cores=2), unit("waits", cores=2, after_s=1)]
    effect = compute_effect(None, side(tree(3, quota("a")), (), waiting), LATER)
    assert (told(effect.starts), told(effect.waits)) == ([], ["waits"])


def test_it_counts_no_start_where_no_cluster_has_room():
    before, after = tree(10, quota("a", 0, 1)), tree(10, quota("a"))
    waiting = [unit("waits", cores=2)]
    sides = side(before, (), waiting), side(after, (), waiting)
    assert told(compute_effect(*sides, LATER).starts) == ["waits"]
    assert compute_effect(*sides, LATER, lambda unit, running, gone: False) == Effect()


def test_it_is_plain_data_for_the_doors(lent):
    body = compute_effect(
        side(promising(0), *lent), side(tree(10, quota("a", 0, 10), quota("b", 0, 6)), *lent), LATER
    ).as_json()
    assert body["excess"][0]["message"] == "root/b has max 6 cpu, with 10 cpu used"
    assert body["excess"][0]["bound"] == "max" and body["unbound"] == ()
