"""Excluded nodes over REST: shown to everybody who reads nodes, made and lifted by fleet admins, and audited."""

from uuid import uuid4

import pytest
from django.utils import timezone

from fleet.core.node_exclusions import ExclusionReason
from fleet.models import AuditEntry, Event, Node, NodeExclusion
from fleet.services.clusters import node_exclusions
from fleet.services.clusters.node_exclusions import Fault
from tests.support import books
from tests.support.people import client_of, person

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


@pytest.mark.parametrize("says", ["uncordon", "include"])
def test_a_node_that_is_gone_is_let_take_pods_again_for_when_it_comes_back(as_admin, as_viewer, north, says):
    assert as_admin.post(f"{URL}drain/").status_code == 204
    rows = list(Node.objects.filter(name="node").values("labels", "ready", "allocatable", "cluster_id", "name"))
    Node.objects.filter(name="node").delete()
    answer = as_admin.post(f"{URL}uncordon/") if says == "uncordon" else patch(as_admin, exclude=None)
    assert answer.status_code in (200, 204), answer.json()
    Node.objects.create(**rows[0])
    assert excluded(as_viewer) == [None]


def test_jobs_that_do_not_meet_a_node_are_shown_to_those_who_read_their_namespace(as_admin, north):
    now = timezone.now()
    for namespace in ("vision", "speech"):
        job = {"job": f"{namespace}/llama", "attempt": 1}
        fault = Fault("k", now, ExclusionReason.GPU_FAULT, f"{namespace}: Xid 79", job)
        node_exclusions.report(north, "node", fault, now, uuid4())
    reader = client_of(person("tina", ("viewer", "vision")))
    for url in ("/api/v1/nodes/", "/api/v1/clusters/north/nodes/"):
        [node] = reader.get(url).json()["results"]
        [shown] = node["excluded_for"]
        assert (shown["job"], shown["reason"], shown["message"]) == ("vision/llama", "GpuFault", "vision: Xid 79")
        assert node["excluded"] is None and "speech" not in str(node)
        assert len(as_admin.get(url).json()["results"][0]["excluded_for"]) == 2


def test_an_admin_cordons_drains_and_uncordons_one_node(as_admin, as_viewer, north):
    for action, message, drains in (
        ("cordon", "excluded by ada: fans", False),
        ("drain", "drained by ada: fans", True),
    ):
        assert as_viewer.post(f"{URL}{action}/").status_code == 403
        assert as_admin.post(f"{URL}{action}/", {"why": "fans"}, format="json").status_code == 204
        [shown] = excluded(as_viewer)
        assert (shown["message"], shown["drains"]) == (message, drains)
        assert as_admin.post(URL.replace("/node/", "/none/") + f"{action}/").status_code == 404
    assert as_viewer.post(f"{URL}uncordon/").status_code == 403 and excluded(as_viewer) != [None]
    assert as_admin.post(f"{URL}uncordon/").status_code == 204 and excluded(as_viewer) == [None]
    assert AuditEntry.objects.filter(actor="ada", kind="NodeExclusion", verb="drain_node", outcome="done").count() == 1
