"""Which paths of the quota tree a reader sees in reports of a time, by the trees that were in force in it."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.errors import InvalidInput
from quotas.models import Queue, QuotaGrant, QuotaRevision
from quotas.services import past_trees, scopes, trees
from tests.support.people import person
from tests.support.quotas import GPU, apply_tree, gpus, leaf

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 10, 12, 0, 30, tzinfo=UTC)
DAY = timedelta(days=1)


def a_tree(**leaves: str | None) -> None:
    apply_tree(*(leaf(name, *([of] if of else []), **gpus(1, 8)) for name, of in leaves.items()), total={GPU: 8})


def saved(*days_ago: float) -> None:
    """The generations in order; queues of now came with the last."""
    for revision, days in zip(QuotaRevision.objects.order_by("generation"), days_ago, strict=True):
        QuotaRevision.objects.filter(pk=revision.pk).update(at=NOW - days * DAY)
    Queue.objects.update(created_at=NOW - days_ago[-1] * DAY)


def seen(user, days: float = 7, until: float = 0, step: timedelta = timedelta(seconds=1)) -> frozenset[str] | None:
    return scopes.visible_paths_between(user, NOW - days * DAY, NOW - until * DAY, NOW, step)


@pytest.fixture
def vic(db):
    return person("vic", ("viewer", "vision"))


def test_a_new_teams_own_queue_and_the_nodes_above_are_visible_of_a_time_before_it(vic):
    a_tree(speech="speech")
    a_tree(speech="speech", llm="vision")
    saved(30, 1)
    assert seen(vic) == seen(vic, days=0.5) == {"root", "root/llm"}


def test_a_queue_that_was_nobodys_before_is_its_teams(vic):
    a_tree(llm=None)
    a_tree(llm="vision")
    saved(30, 1)
    assert seen(vic) == {"root", "root/llm"}


def test_a_queue_whose_children_were_another_teams_shows_nothing_of_them(vic):
    apply_tree({**leaf("llm", **gpus(1, 8)), "children": [leaf("old", "speech", **gpus(1, 8))]}, total={GPU: 8})
    a_tree(llm="vision")
    saved(30, 1)
    assert seen(vic) == frozenset()


def test_a_node_that_was_another_teams_queue_shows_nothing_of_it(vic):
    a_tree(llm="speech")
    apply_tree({**leaf("llm", **gpus(1, 8)), "children": [leaf("new", "vision", **gpus(1, 8))]}, total={GPU: 8})
    saved(30, 1)
    assert seen(vic) == {"root", "root/llm/new"}


@pytest.mark.parametrize("step", [timedelta(seconds=1), timedelta(hours=1)])
def test_a_time_of_which_the_trees_are_not_kept_is_refused_with_the_earliest(vic, step):
    a_tree(llm="speech")
    a_tree(llm="vision")
    saved(30, 1)
    assert seen(vic) == frozenset()
    QuotaRevision.objects.filter(generation=1).delete()
    with pytest.raises(InvalidInput) as refused:
        seen(vic, step=step)
    earliest = datetime.fromisoformat(re.findall(r"before (\S+):", str(refused.value))[0])
    assert NOW - DAY <= earliest < NOW - DAY + step and earliest.timestamp() % step.total_seconds() == 0
    assert scopes.visible_paths_between(vic, earliest, NOW, NOW, step) == {"root", "root/llm"}


def test_a_lead_keeps_the_queue_when_the_tree_is_deleted_and_applied_again():
    lead = person("lea", ("viewer", "other"))
    QuotaGrant.objects.create(user=lead, path="root/speech")
    a_tree(speech="speech")
    trees.delete("tree", by="system", now=NOW)
    a_tree(speech="speech")
    saved(30, 2, 1)
    assert seen(lead) == seen(lead, until=3) == {"root", "root/speech"}


def test_the_newest_tree_counts_although_it_was_saved_while_the_clock_was_ahead(vic):
    a_tree(llm="vision")
    a_tree(llm="speech", mine="vision")
    saved(30, -1)
    assert seen(vic) == {"root", "root/mine"}


def test_a_tree_is_read_once_and_changes_of_amounts_are_no_other_trees(vic, monkeypatch):
    monkeypatch.setattr(past_trees, "MOST_TREES", 1)
    for high in range(4, 8):
        apply_tree(leaf("llm", "vision", **gpus(1, high)), total={GPU: 8})
    saved(6, 5, 4, 3)
    assert seen(vic) == {"root", "root/llm"}
    with CaptureQueriesContext(connection) as queries:
        assert seen(vic) == {"root", "root/llm"}
    assert not [query for query in queries if '"manifest"' in query["sql"]]
    a_tree(llm="vision", two="speech")
    a_tree(llm="vision", three="speech")
    saved(6, 5, 4, 3, 2, 1)
    with pytest.raises(InvalidInput, match="choose a later from"):
        seen(vic)
