"""Excluded nodes over REST: shown to everybody who reads nodes, made and lifted by fleet admins, and audited."""

import pytest

from fleet.models import AuditEntry, Event, NodeExclusion
from tests.support import books

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/api/v1/clusters/north/nodes/node/"


@pytest.fixture
def north(transactional_db):
    return books.a_cluster("north")


def patch(caller, url=URL, **body):
    return caller.patch(url, body, format="json")


def excluded(caller):
    return [node["excluded"] for node in caller.get("/api/v1/nodes/").json()["results"]]


def test_an_admin_excludes_a_node_and_lets_it_take_pods_again(as_admin, as_viewer, north):
    assert excluded(as_viewer) == [None]
    answer = patch(as_admin, exclude={"hours": 2, "why": "new cables"})
    assert (answer.status_code, answer.json()) == (200, {"labels": {}, "overwrite": False})
    [shown] = excluded(as_viewer)
    assert as_viewer.get("/api/v1/clusters/north/").json()["gpus"]["allocatable"] == 0, "it is no capacity"
    assert (shown["reason"], shown["message"]) == ("Operator", "excluded by ada: new cables")
    assert as_viewer.get("/api/v1/clusters/north/nodes/").json()["results"][0]["excluded"] == shown
    event = Event.objects.get(reason="NodeExcluded")
    assert event.regarding_name == "north" and "node node takes no pods until" in event.message
    assert patch(as_admin, exclude=None).status_code == 200 and excluded(as_viewer) == [None]
    assert patch(as_admin, exclude=None).status_code == 200, "it may be said again"
    audited = AuditEntry.objects.filter(actor="ada", kind="NodeExclusion", name="node", outcome="done")
    assert audited.count() == 2


def test_only_admins_may_and_only_for_a_while_and_only_nodes_that_are_there(as_admin, as_viewer, north):
    assert patch(as_viewer, exclude={"hours": 2}).status_code == 403
    assert patch(as_admin, exclude={"hours": 0}).status_code in (400, 422)
    assert patch(as_admin, exclude={"hours": 1e9}).status_code in (400, 422)
    assert patch(as_admin, URL.replace("/node/", "/none/"), exclude={"hours": 1}).status_code == 404
    assert patch(as_admin, URL.replace("/node/", "/none/"), exclude=None).status_code == 404
    assert not NodeExclusion.objects.exists()
