"""Who may change which part of the tree: everything a change touches must be below a node of theirs."""

from datetime import UTC, datetime

import pytest

from fleet.errors import Forbidden
from fleet.models import Grant
from quotas import queries
from quotas.models import QuotaGrant, QuotaRevision
from quotas.services import trees
from quotas.services.trees import Saving
from tests.quotas.core.builders import manifest, quota
from tests.support.people import person

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEAD = Saving("lea", NOW)


@pytest.fixture(autouse=True)
def tree(db):
    """lea leads a, which has x and y; b is somebody else's."""
    QuotaGrant.objects.create(user=person("lea"), path="root/a")
    root = quota("root", 9, 9, quota("a", 4, 9, quota("x", 1, 4), quota("y", 1, 4)), quota("b", 2, 9))
    trees.apply(manifest(root), by="test", now=NOW)


def edit(path, **fields):
    return {"op": "edit", "path": path, "set": fields}


@pytest.mark.parametrize(
    "change",
    [
        edit("root/a/x", min={"cpu": 2}),
        {"op": "add", "parent": "root/a", "node": {"name": "z"}},
        {"op": "remove", "path": "root/a/x"},
        {"op": "rename", "path": "root/a/x", "name": "z"},
        {"op": "move", "path": "root/a/x", "parent": "root/a/y"},
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
