"""What a queue used lately counts, fades, and decides between queues; within a queue its own order stands."""

from dataclasses import replace
from datetime import timedelta

import pytest

from quotas.core.accounts.ledger import Charge
from quotas.core.queues import recent_use
from quotas.core.queues.recent_use import HALF_LIFE, RecentUse, in_order
from tests.quotas.core.builders import ledger, names, quota, unit

DAY = timedelta(seconds=HALF_LIFE).total_seconds()


def test_it_counts_half_after_a_half_life_whatever_ran_meanwhile():
    use = RecentUse()
    use.ended("one", "root/a", 8, 0.0, 100.0)
    before = use.at(100.0)["root/a"]
    use.ended("other", "root/b", 8, DAY, DAY + 100)
    assert before == pytest.approx(800, rel=0.01)
    assert use.at(100.0 + DAY)["root/a"] == pytest.approx(before / 2)


def test_it_counts_a_run_once_however_often_it_is_passed_in():
    use = RecentUse()
    for _ in range(3):
        use.ended("one", "root/a", 8, 0.0, 100.0)
    assert use.at(100.0)["root/a"] == pytest.approx(800, rel=0.01)


def test_it_counts_the_same_whenever_it_began_to_count():
    late, early = RecentUse(), RecentUse()
    early.ended("before", "root/c", 1, 0.0, 1.0)
    for use in (late, early):
        use.ended("one", "root/a", 8, 9 * DAY, 10 * DAY)
    assert late.at(11 * DAY)["root/a"] == pytest.approx(early.at(11 * DAY)["root/a"])


def test_it_remembers_a_bounded_number_of_runs(monkeypatch):
    monkeypatch.setattr(recent_use, "REMEMBERED", 3)
    use = RecentUse()
    for run in range(10):
        use.ended(run, "root/a", 1, 0.0, 100.0)
    assert use.at(100.0)["root/a"] == pytest.approx(300, rel=0.01)


def test_it_puts_the_queue_first_that_used_least_by_weight():
    found = ledger(10, quota("a", attributes={"weight": "2"}), quota("b"))
    waiting = [unit("a0", "a"), unit("b0", "b", after_s=9)]
    assert names(in_order(found, waiting, {"root/a": 10.0, "root/b": 6.0}, {})) == ["a0", "b0"]
    assert names(in_order(found, waiting, {"root/a": 14.0, "root/b": 6.0}, {})) == ["b0", "a0"]


def test_it_counts_what_each_is_about_to_use():
    found = ledger(10, quota("a"), quota("b"))
    waiting = [unit("a0", "a"), unit("b0", "b", after_s=9)]
    assert names(in_order(found, waiting, {}, {"a0": 9.0, "b0": 3.0})) == ["b0", "a0"]


def test_it_puts_whom_a_min_covers_before_all_others():
    found = ledger(10, quota("a", 4, 10), quota("b"))
    waiting = [unit("a0", "a", 3, after_s=9), unit("b0", "b", 3, priority=9)]
    assert names(in_order(found, waiting, {"root/a": 99.0}, {})) == ["a0", "b0"]


def test_it_keeps_the_order_of_a_queue_whatever_each_would_use():
    found = ledger(10, quota("a"), quota("b"))
    waiting = [unit("second", "a", after_s=1), unit("first", "a"), unit("urgent", "a", priority=1, after_s=9)]
    assert names(in_order(found, waiting, {}, {"urgent": 99.0})) == ["urgent", "first", "second"]


def test_it_compares_teams_before_their_queues():
    team = quota("team", 0, 10, quota("x"), quota("y"))
    found = ledger(10, team, quota("b"))
    waiting = [unit("x0", "team/x"), unit("y0", "team/y"), unit("b0", "b")]
    used = {"root/team/x": 5.0, "root/team/y": 1.0, "root/b": 4.0}
    assert names(in_order(found, waiting, used, {})) == ["b0", "y0", "x0"]


def test_it_orders_the_jobs_of_a_tree_that_is_one_queue():
    found = ledger(10)
    waiting = [
        replace(unit(name, after_s=at), charge=Charge("root", {"cpu": 1})) for name, at in (("late", 1), ("early", 0))
    ]
    assert names(in_order(found, waiting, {}, {})) == ["early", "late"]


def test_it_counts_runs_that_are_years_apart():
    """As the latest 5,000 runs of a small fleet are: what is old counts nothing, what is new counts in full."""
    use, years = RecentUse(), 10 * 366 * HALF_LIFE
    use.ended("old", "root/a", 8, 0.0, 100.0)
    use.ended("new", "root/a", 1, years, years + 100.0)
    use.ended("late", "root/b", 1, 0.0, 100.0)
    assert use.at(years + 100.0) == pytest.approx({"root/a": 100.0, "root/b": 0.0}, rel=1e-3)


@pytest.mark.parametrize("now", [0.0, -20_000 * HALF_LIFE])
def test_it_survives_a_clock_that_was_set_back(now):
    use = RecentUse()
    use.ended("run", "root/a", 1, 5000 * HALF_LIFE + 100.0, 5000 * HALF_LIFE)
    use.ended("next", "root/b", 1, 5000 * HALF_LIFE, 5000 * HALF_LIFE + 100.0)
    found = use.at(now)
    assert found["root/a"] == 0.0 and found["root/b"] >= 100.0 * 0.99
