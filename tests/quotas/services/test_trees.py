"""The tree as rows: applied once, changed as a whole or not at all, with queues that keep their names."""

import re
from datetime import UTC, datetime

import pytest

from fleet.errors import Conflict, InvalidInput, NotFound
from fleet.models import Event, JournalEntry
from quotas import queries, signals
from quotas.models import Queue, QuotaTree
from quotas.services import history, trees
from tests.quotas.core.builders import manifest, quota

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def apply(*children, name="tree", **fields):
    return trees.apply(manifest(quota("root", 9, 9, *children, **fields), name=name), by="ada", now=NOW)


def queue_names():
    return dict(Queue.objects.values_list("path", "name"))


@pytest.fixture
def veto():
    """Somebody with jobs in the tree, who refuses whatever would take root/a away."""

    def refuse(sender, before, after, **_):
        return None if after and "root/a" in after.by_path else "root/a has 2 running jobs"

    signals.tree_changing.connect(refuse)
    yield refuse
    signals.tree_changing.disconnect(refuse)


def test_it_makes_a_queue_for_every_node_named_as_the_documentation_shows():
    assert apply(quota("child-2", namespaces=["default"])).action == "created"
    assert re.fullmatch(r"root-[a-z0-9]{5}", queue_names()["root"])
    assert re.fullmatch(r"root-child-2-[a-z0-9]{5}", queue_names()["root/child-2"])
    assert queries.tree().leaf_of("default", {}).path == "root/child-2"


def test_it_changes_nothing_the_second_time():
    apply(quota("a"))
    before = JournalEntry.objects.count()
    assert apply(quota("a")).action == "unchanged"
    assert (JournalEntry.objects.count(), queries.tree_row().generation) == (before, 1)


def test_it_keeps_the_names_of_queues_whose_nodes_stay():
    apply(quota("a"), quota("b"))
    before = queue_names()
    assert apply(quota("a", 1, 2, quota("c")), quota("d")).action == "configured"
    after = queue_names()
    assert (after["root"], after["root/a"]) == (before["root"], before["root/a"])
    assert after.keys() == {"root", "root/a", "root/a/c", "root/d"}
    assert Queue.objects.get(path="root/a").leaf is False


def test_it_writes_nothing_of_a_broken_tree():
    apply(quota("a"))
    with pytest.raises(InvalidInput, match="more than its max 1 cpu") as told:
        apply(quota("a", 2, 1), quota("b"))
    assert told.value.faults[0].field == "spec.root.children[0].min.cpu"
    assert (queue_names().keys(), queries.tree_row().generation) == ({"root", "root/a"}, 1)


def test_it_has_one_tree_under_one_name():
    apply(quota("a"))
    with pytest.raises(Conflict, match="The quota tree is tree and there is one only"):
        apply(quota("a"), name="other")


def test_it_asks_those_who_have_jobs_before_it_takes_a_queue_away_case_29(veto):
    apply(quota("a"))
    with pytest.raises(Conflict, match="root/a has 2 running jobs"):
        apply(quota("b"))
    with pytest.raises(Conflict, match="root/a has 2 running jobs"):
        trees.delete("tree", by="ada", now=NOW)
    assert queue_names().keys() == {"root", "root/a"}


def test_it_goes_with_all_its_queues():
    apply(quota("a"))
    trees.delete("tree", by="ada", now=NOW)
    assert (queries.tree(), Queue.objects.count()) == (None, 0)
    with pytest.raises(NotFound):
        trees.delete("tree", by="ada", now=NOW)


def test_it_tells_the_journal_and_the_timeline():
    apply(quota("a"))
    apply(quota("b"))
    told = list(JournalEntry.objects.exclude(kind="Event").values_list("kind", "action"))
    assert told[0] == ("ElasticQuotaTree", "added")
    assert sorted(told[3:]) == [("ElasticQuotaTree", "modified"), ("Queue", "added"), ("Queue", "deleted")]
    assert list(Event.objects.order_by("id").values_list("reason", flat=True)) == [
        "QuotaTreeCreated",
        "QuotaTreeChanged",
    ]


def test_it_wakes_the_scheduler_once_the_change_is_there(django_capture_on_commit_callbacks):
    heard = []
    signals.tree_changed.connect(listener := lambda sender, **_: heard.append(queries.tree()))
    try:
        with django_capture_on_commit_callbacks(execute=True):
            apply(quota("a"))
            apply(quota("a"))
    finally:
        signals.tree_changed.disconnect(listener)
    assert len(heard) == 1


def test_it_forgets_what_servers_fill_in():
    body = manifest(quota("root", 9, 9))
    body["metadata"]["uid"], body["status"] = "x", {"root": {}}
    row = trees.apply(body, by="ada", now=NOW).row
    assert (row.manifest.get("status"), row.manifest["metadata"]) == (
        None,
        {"name": "tree", "namespace": "kube-system"},
    )


def test_it_refuses_to_go_on_without_limits_when_the_rules_have_changed():
    apply(quota("a"))
    QuotaTree.objects.update(manifest={"apiVersion": "v0"})
    with pytest.raises(ValueError, match="not valid any more"):
        queries.tree()


def test_it_forgets_the_oldest_generations(monkeypatch):
    monkeypatch.setattr(trees, "GENERATIONS", 3)
    for most in range(1, 6):
        apply(quota("a", 0, most))
    assert [each.generation for each in queries.revisions()] == [5, 4, 3]
    assert history.differences(queries.revisions().last()) is not None
    with pytest.raises(NotFound, match="There is no generation 2"):
        trees.revert(2, trees.Saving("ada", NOW))
