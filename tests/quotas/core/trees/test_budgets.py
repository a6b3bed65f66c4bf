"""The attribute `budget`: what it reads, its periods, and the tree while it is spent."""

from datetime import UTC, datetime

import pytest

from quotas.core.accounts.budget_accounts import Span, accounts, begin_of_longest, without_borrowing
from quotas.core.trees.budgets import Budget, Period, WhenSpent
from quotas.core.trees.parsing import parse_tree
from quotas.core.trees.tree import ExcessPolicy
from tests.quotas.core.builders import manifest, quota, tree

GPU = "nvidia.com/gpu"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def budget_of(text: object) -> tuple[Budget | None, list[str]]:
    read = parse_tree(manifest(quota("root", 10, 10, quota("a", attributes={"budget": text}))))
    own = read.tree.by_path["root/a"].attributes.time.budget if read.tree else None
    return own, [f"{fault.field} {fault.detail}" for fault in read.faults]


def test_it_reads_a_budget_with_and_without_its_defaults():
    assert budget_of('{"nvidia.com/gpu-hours": 0.5}')[0] == Budget(0.5, Period.MONTH, WhenSpent.WAIT)
    stated = '{"nvidia.com/gpu-hours": 9, "per": "week", "when-spent": "Stop"}'
    assert budget_of(stated)[0] == Budget(9, Period.WEEK, WhenSpent.STOP)


@pytest.mark.parametrize(("text", "fault"), [
    ("5000", "must be JSON with nvidia.com/gpu-hours"), ("{", "must be JSON"), ('{"per": "month"}', "must be JSON with"),
    ('{"nvidia.com/gpu-hours": 1, "par": "day"}', "must be JSON with"),
    ('{"nvidia.com/gpu-hours": -1}', "must be a number from 0"), ('{"nvidia.com/gpu-hours": true}', "must be a number"),
    ('{"nvidia.com/gpu-hours": NaN}', "must be a number"), ('{"nvidia.com/gpu-hours": "5"}', "not '5'"),
    ('{"nvidia.com/gpu-hours": 5, "per": "hour"}', "per must be one of day, week, month, quarter, year, not 'hour'"),
    ('{"nvidia.com/gpu-hours": 5, "when-spent": ["Stop"]}', "when-spent must be one of Wait, BorrowNothing, Stop"),
])  # fmt: skip
def test_it_refuses_everything_else_and_says_what_it_takes(text, fault):
    own, [found] = budget_of(text)
    assert own is None and fault in found and "attributes" in found


@pytest.mark.parametrize(("per", "now", "begin", "end"), [
    ("day", "2026-03-10T12:00", "2026-03-10", "2026-03-11"), ("week", "2026-03-10T12:00", "2026-03-09", "2026-03-16"),
    ("month", "2026-12-31T23:59:59", "2026-12-01", "2027-01-01"), ("month", "2024-02-29T00:00", "2024-02-01", "2024-03-01"),
    ("quarter", "2026-11-05", "2026-10-01", "2027-01-01"), ("quarter", "2026-03-31", "2026-01-01", "2026-04-01"),
    ("year", "2026-06-01", "2026-01-01", "2027-01-01"), ("week", "2026-01-01", "2025-12-29", "2026-01-05"),
])  # fmt: skip
def test_periods_are_those_of_the_calendar(per, now, begin, end):
    assert Period(per).bounds(at(now)) == (at(begin), at(end))


def test_it_counts_what_every_leaf_below_used_in_the_period_and_nothing_of_its_neighbours():
    stated = {"budget": '{"nvidia.com/gpu-hours": 5, "per": "day"}'}
    grown = tree(10, quota("a", 0, 10, quota("x"), attributes=stated), quota("ab", attributes=stated))
    now, midnight = at("2026-03-10T12:00"), round(at("2026-03-10").timestamp() * 1000)
    hour = 3_600_000
    spans = [
        Span("root/a/x", 2, midnight - hour, midnight + hour), Span("root/a/gone", 1, midnight, midnight + 2 * hour),
        Span("root/ab", 3, midnight, None), Span("root/a/x", 1, midnight - 9 * hour, midnight - hour),
    ]  # fmt: skip
    first, second = accounts(grown, spans, now)
    assert (first.path, first.used_ms, first.running, first.is_spent) == ("root/a", 4 * hour, 0, False)
    assert (second.path, second.used_ms, second.running, second.is_spent) == ("root/ab", 36 * hour, 3, True)
    assert first.spent_at is None and second.spent_at is None and begin_of_longest(grown, now) == at("2026-03-10")


def test_a_node_that_may_borrow_nothing_has_its_max_at_its_min_and_evicts_nobody():
    grown = tree({GPU: 10}, quota("a", {GPU: 4}, {GPU: 10}, attributes={"excess": "TakeBack"}), quota("b"))
    modest = without_borrowing(grown, ["root/a"])
    node = modest.by_path["root/a"]
    assert (node.max[GPU], node.attributes.excess) == (4, ExcessPolicy.WAIT)
    assert modest.by_path["root/b"] == grown.by_path["root/b"] and without_borrowing(grown, []) is grown
