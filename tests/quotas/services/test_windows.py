"""Windows as the editors know them: what is refused, previewed and shown, and which open where a tree was saved long ago."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from fleet.errors import InvalidInput
from fleet.services.operations.clock_steps import StepDetector
from quotas import queries
from quotas.models import Queue, QuotaTree
from quotas.services import previews, trees, views, windows
from tests.quotas.core.builders import manifest, quota
from tests.support.people import person

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def window(begin: datetime, low: int, hours: int = 2, **fields) -> dict:
    return {"from": begin.isoformat(), "to": (begin + hours * HOUR).isoformat(), "min": {"cpu": low}, **fields}


def body(*entries: dict, of_b: int = 0) -> dict:
    return manifest(
        quota("root", 10, 10, quota("a", 2, 10, attributes={"windows": json.dumps(entries)}), quota("b", of_b, 10))
    )


def test_a_tree_that_would_not_be_valid_at_some_time_is_refused_with_the_time_and_both_numbers():
    with pytest.raises(InvalidInput) as refused:
        trees.apply(body(window(NOON + HOUR, 9), of_b=2), by="system", now=NOON)
    assert "from 2026-03-10 13:00:00 UTC on, with windows of root/a open: the children of root have min 11 cpu" in str(
        refused.value
    )
    preview = previews.of_manifest(body(window(NOON + HOUR, 9), of_b=2), by="system", now=NOON)
    [fault] = preview.faults
    assert (fault.path, fault.field, preview.saves) == ("root/a", "attributes.windows", False)
    trees.apply(body(window(NOON - 3 * HOUR, 9), of_b=2), by="system", now=NOON)  # what is over breaks nothing


def test_the_tree_shows_what_is_open_and_what_opens_next_and_counts_by_it():
    trees.apply(body(window(NOON, 6), window(NOON + 5 * HOUR, 8)), by="system", now=NOON)
    row = queries.tree_row()
    before = {node.path: node for node in views.tree_view_of(row, person("eva"), NOON).nodes}["root/a"]
    assert windows.review(NOON) == 1
    node = {node.path: node for node in views.tree_view_of(row, person("ida"), NOON).nodes}["root/a"]
    assert [(each.is_open, each.min["cpu"]) for each in node.windows] == [(True, 6000), (False, 8000)]
    assert (before.resources["cpu"].min, node.resources["cpu"].min) == (2000, 6000)


def test_a_window_that_was_edited_away_or_whose_tree_is_gone_closes():
    trees.apply(body(window(NOON, 6)), by="system", now=NOON)
    windows.review(NOON)
    trees.apply(body(), by="system", now=NOON)
    assert windows.review(NOON) == 1 and not windows.exist()
    assert not Queue.objects.filter(window__isnull=False).exists()


def test_of_windows_that_are_not_valid_together_after_all_the_first_opens():
    """As a tree may have that was saved more than a year ago."""
    trees.apply(body(window(NOON, 6)), by="system", now=NOON)
    stored = body(window(NOON, 6))
    stored["spec"]["root"]["children"][1]["attributes"] = {"windows": json.dumps([window(NOON, 6)])}
    QuotaTree.objects.update(manifest=stored)
    assert windows.review(NOON) == 1
    assert [queue.path for queue in Queue.objects.filter(window__isnull=False)] == ["root/a"]


def test_two_passes_at_once_and_one_that_is_late_write_what_holds_now():
    trees.apply(body(window(NOON, 6), window(NOON + HOUR, 8)), by="system", now=NOON)
    assert [windows.review(NOON + minutes * HOUR / 60) for minutes in (0, 0, 90, 30, 600)] == [1, 0, 1, 1, 1]
    assert Queue.objects.get(path="root/a").window is None


def test_a_clock_that_is_ahead_for_some_minutes_opens_no_window():
    detector, ahead = StepDetector(), timedelta(days=31)
    trees.apply(body(window(NOON + ahead - HOUR, 6)), by="system", now=NOON)
    detector.look(NOON, 0.0)
    detector.look(NOON + ahead + timedelta(seconds=30), 30.0)
    assert windows.review(NOON + ahead + timedelta(seconds=30)) == 0
    assert windows.review(NOON + ahead + timedelta(minutes=11)) == 1, "a clock that stays ahead is believed"
