"""Who may change which part of the tree: everything a change touches must be below a node of theirs."""

from datetime import UTC, datetime

import pytest

from fleet.errors import Forbidden
from fleet.models import Grant
from quotas import queries
from quotas.models import QuotaGrant, QuotaRevision
from quotas.services import previews, trees
from quotas.services.trees import Saving
from tests.quotas.core.builders import manifest, quota
from tests.support.people import person

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEAD = Saving("lea", NOW)


@pytest.fixture(autouse=True)
def tree(db):
    """lea leads a, which has x and y; b is another team's."""
    QuotaGrant.objects.create(user=person("lea"), path="root/a")
    x, y = quota("x", 1, 4, namespaces=["team-x"]), quota("y", 1, 4)
    root = quota("root", 9, 9, quota("a", 4, 9, x, y), quota("b", 2, 9))
    trees.apply(manifest(root), by="test", now=NOW)


def edit(path, **fields):
    return {"op": "edit", "path": path, "set": fields}


@pytest.mark.parametrize(
    "change",
    [
        edit("root/a/x", min={"cpu": 2}),
        {"op": "add", "parent": "root/a", "node": {"name": "z"}},
        {"op": "remove", "path": "root/a/y"},
        {"op": "rename", "path": "root/a/x", "name": "z"},
        {"op": "move", "path": "root/a/x", "parent": "root/a/y"},
        {"op": "move", "path": "root/a/x", "parent": "root/a", "index": 1},
    ],
    ids=lambda change: change["op"],
)
def test_it_lets_a_lead_do_anything_below(change):
    room = edit("root/a/y", min={"cpu": 2})
    assert trees.edit([room, change], LEAD).action == "configured"


@pytest.mark.parametrize(
    "change",
    [
        edit("root/a", min={"cpu": 2}),
        edit("root/b", max={"cpu": 2}),
        {"op": "add", "parent": "root", "node": {"name": "z"}},
        {"op": "remove", "path": "root/a"},
        {"op": "rename", "path": "root/a", "name": "z"},
        {"op": "move", "path": "root/a/x", "parent": "root/b"},
        {"op": "move", "path": "root/b", "parent": "root/a"},
    ],
    ids=str,
)
def test_it_lets_a_lead_do_nothing_beside_or_above(change):
    room = edit("root/a/x", min={"cpu": 0})
    with pytest.raises(Forbidden, match="lea leads what is below root/a only"):
        trees.edit([room, change], LEAD)
    assert queries.tree_row().generation == 1 and QuotaRevision.objects.count() == 1


def test_it_lets_a_lead_not_delete_the_tree():
    with pytest.raises(Forbidden):
        trees.delete("tree", by="lea", now=NOW)


def test_it_counts_a_role_in_one_namespace_for_nothing():
    person("nina", (Grant.Role.QUOTA_ADMIN, "vision"))
    with pytest.raises(Forbidden, match="it takes the role quota-admin"):
        trees.edit([edit("root/b", max={"cpu": 2})], Saving("nina", NOW))


def test_it_lets_a_quota_admin_change_everything():
    person("quinn", (Grant.Role.QUOTA_ADMIN, ""))
    assert trees.edit([edit("root/b", max={"cpu": 2})], Saving("quinn", NOW)).row.changed_by == "quinn"


def test_it_lets_a_lead_move_a_namespace_between_leaves_below():
    changes = [edit("root/a/x", namespaces=[]), edit("root/a/y", namespaces=["team-x"])]
    assert trees.edit(changes, LEAD).action == "configured"


@pytest.mark.parametrize(
    ("changes", "namespace"),
    [
        ([edit("root/a/y", namespaces=["default"])], "list namespace default"),
        ([{"op": "add", "parent": "root/a", "node": {"name": "z", "namespaces": ["team-z"]}}], "list namespace team-z"),
        ([edit("root/a/x", namespaces=["team-x", "default"])], "list namespace default"),
        ([edit("root/a/x", namespaces=[])], "take out namespace team-x"),
        ([{"op": "remove", "path": "root/a/x"}], "take out namespace team-x"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_it_lets_a_lead_neither_list_a_namespace_nor_take_one_out(changes, namespace):
    with pytest.raises(Forbidden, match=f"lea may not {namespace}: .* role quota-admin"):
        trees.edit(changes, LEAD)
    by_admin = Saving("test", NOW)
    assert trees.edit(changes, by_admin).action == "configured"


def tampered(**changes):
    document = trees.edits.deepcopy(queries.tree_row().manifest)
    for path, value in changes.items():
        at, keys = document, path.split("__")
        for key in keys[:-1]:
            at = at.setdefault(key, {})
        at[keys[-1]] = value
    return document


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata__labels": {"a": "b"}},
        {"metadata__annotations": {"a": "b"}},
        {"spec__extra": {"a": "b"}},
        {"extra": 1},
    ],
    ids=str,
)
def test_it_lets_a_lead_change_nothing_beside_the_nodes(changes):
    with pytest.raises(Forbidden, match="lea leads what is below root/a only"):
        trees.save(tampered(**changes), LEAD)
    assert previews.of_manifest(tampered(**changes), by="lea", now=None).refusals


def test_it_lets_a_lead_not_change_the_order_of_the_teams():
    document = tampered()
    document["spec"]["root"]["children"].reverse()
    with pytest.raises(Forbidden, match="may not change root: lea leads"):
        trees.save(document, LEAD)
    with pytest.raises(Forbidden):
        trees.edit([{"op": "move", "path": "root/b", "parent": "root", "index": 0}], LEAD)


def test_what_servers_fill_in_is_no_change_of_a_lead():
    document = tampered(metadata__uid="1", metadata__resourceVersion="7", status={"a": "b"})
    document["spec"]["root"]["children"][0]["children"][1]["max"] = {"cpu": 3}
    assert not previews.of_manifest(document, by="lea", now=None).refusals
    assert trees.save(document, LEAD).action == "configured"


@pytest.mark.parametrize(
    "changes",
    [
        [{"op": "add", "parent": "root/a", "node": {"name": "b"}}],
        [{"op": "rename", "path": "root/a/y", "name": "b"}],
        [{"op": "add", "parent": "root/a", "node": {"name": "inner", "children": [{"name": "b"}]}}],
    ],
    ids=lambda changes: changes[0]["op"],
)
def test_it_lets_a_lead_take_no_name_by_which_jobs_of_another_team_find_their_leaf(changes):
    with pytest.raises(Forbidden, match="lea may not call a leaf b: root/b has that name"):
        trees.edit(changes, LEAD)
    assert trees.edit(changes, Saving("test", NOW)).action == "configured"
    again = {"op": "edit", "path": "root/a/x", "set": {"max": {"cpu": 3}}}
    assert trees.edit([again], LEAD).action == "configured"
