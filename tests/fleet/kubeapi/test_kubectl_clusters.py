"""Clusters over a stock kubectl: labels, annotations, taints and the cordon are written, a delete detaches, none is created."""

import json

import pytest

from fleet.models import Cluster, Event, Grant
from tests.support.books import a_cluster, apply, cycle
from tests.support.kubectl import served
from tests.support.people import person
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)

HEARTBEAT = {"key": "cluster.karmada.io/not-ready", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}


@pytest.fixture
def kubectl(transactional_db, tmp_path):
    with served(tmp_path) as made:
        yield made


@pytest.fixture
def ada(kubectl, admin, north):
    return kubectl.as_user("ada")


def patched(someone, spec, refused=False):
    ask = someone.refused if refused else someone.says
    return ask("patch", "cluster", "north", "--type=merge", "-p", json.dumps({"spec": spec}))


def test_it_labels_and_annotates(ada):
    ada.says("label", "cluster", "north", "tier=gold")
    ada.says("annotate", "cluster", "north", "note=two words")
    ada.says("label", "cluster", "north", "tier-")
    north = Cluster.objects.get()
    assert (north.labels, north.annotations) == ({}, {"note": "two words"})
    assert "two words" in ada.says("describe", "cluster", "north")


def test_it_refuses_a_label_by_its_place(ada):
    told = ada.refused("patch", "cluster", "north", "--type=merge", "-p", '{"metadata":{"labels":{"a":"-"}}}')
    assert "metadata.labels.a" in told and not Cluster.objects.get().labels


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_it_refuses_labels_that_are_no_object(ada, field):
    path = "/apis/cluster.karmada.io/v1alpha1/clusters/north"
    document = {
        **json.loads(ada.says("get", "cluster", "north", "-ojson")),
        "metadata": {"name": "north", field: [["a", "b"]]},
    }
    assert f"metadata.{field} must be an object" in ada.refused(
        "replace", "--raw", path, "-f", "-", given=json.dumps(document)
    )


def test_it_taints_and_cordons_by_taints(ada):
    cordon = {"key": "convoy.dev/cordoned", "effect": "NoSchedule"}
    patched(ada, {"taints": [{"key": "gpu", "value": "old", "effect": "NoSchedule"}, cordon]})
    north = Cluster.objects.get()
    assert [each["key"] for each in north.taints] == ["gpu"] and north.cordoned
    shown = json.loads(ada.says("get", "cluster", "north", "-ojson"))
    assert [each["key"] for each in shown["spec"]["taints"]] == ["gpu", "convoy.dev/cordoned"]
    ada.says("patch", "cluster", "north", "--type=json", "-p", '[{"op":"remove","path":"/spec/taints/1"}]')
    assert not Cluster.objects.get().cordoned
    assert Event.objects.filter(reason="ClusterUncordoned", message__startswith="ada").exists()


def test_it_drains_by_the_same_taint_as_the_verb(ada, as_admin):
    drain = {"key": "convoy.dev/drained", "effect": "NoExecute"}
    patched(ada, {"taints": [drain]})
    assert as_admin.get("/api/v1/clusters/north/").json()["drained"] is True
    assert as_admin.post("/api/v1/clusters/north/uncordon/").json()["drained"] is False
    assert "taints" not in json.loads(ada.says("get", "cluster", "north", "-ojson"))["spec"]
    as_admin.post("/api/v1/clusters/north/drain/")
    [shown] = json.loads(ada.says("get", "cluster", "north", "-ojson"))["spec"]["taints"]
    assert drain.items() <= shown.items() and shown["timeAdded"]
    patched(ada, {"taints": [shown, {"key": "convoy.dev/cordoned", "effect": "NoSchedule"}]})
    patched(ada, {"taints": [shown]})
    assert Cluster.objects.get().drained and not Cluster.objects.get().cordoned


def test_it_keeps_the_taints_of_the_heartbeat_and_says_so(ada):
    Cluster.objects.update(taints=[HEARTBEAT])
    assert "Warning: the taint cluster.karmada.io/not-ready:NoExecute is kept" in patched(ada, {"taints": []})
    assert Cluster.objects.get().taints == [HEARTBEAT]
    wrong = {**HEARTBEAT, "effect": "NoSchedule"}
    assert "spec.taints[0].key" in patched(ada, {"taints": [wrong]}, refused=True)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"region": "mars"}, "spec.region"),
        ({"taints": [{"key": "a", "effect": "Sometimes"}]}, "spec.taints[0].effect"),
        ({"taints": "none"}, "spec.taints"),
        ({"taints": [{"key": "convoy.dev/cordoned", "effect": "NoExecute"}]}, "spec.taints[0].effect"),
    ],
)
def test_it_refuses_what_is_not_to_be_written(ada, spec, field):
    assert field in patched(ada, spec, refused=True)
    north = Cluster.objects.get()
    assert not north.taints and not north.cordoned


def test_it_warns_of_fields_nobody_knows(ada):
    assert 'unknown field "spec.colour"' in patched(ada, {"colour": "red"})


def test_it_tries_without_writing(ada):
    ada.says("label", "cluster", "north", "tier=gold", "--dry-run=server")
    assert not Cluster.objects.get().labels


def test_it_applies_on_the_server_and_explains(ada):
    body = (
        '{"apiVersion":"cluster.karmada.io/v1alpha1","kind":"Cluster","metadata":{"name":"north","labels":{"a":"b"}}}'
    )
    ada.says("apply", "--server-side", "-f", "-", given=body)
    assert Cluster.objects.get().labels == {"a": "b"}
    assert "timeAdded" in ada.says("explain", "cluster.spec.taints")


def test_it_names_the_way_to_join(ada):
    body = '{"apiVersion":"cluster.karmada.io/v1alpha1","kind":"Cluster","metadata":{"name":"south"}}'
    for how in (["create"], ["apply"], ["apply", "--server-side"]):
        assert "convoy cluster join" in ada.refused(*how, "-f", "-", given=body)
    assert ada.tries("auth", "can-i", "create", "clusters").stdout.startswith("no - ")


def test_it_detaches_what_is_deleted(ada):
    assert "deleted" in ada.says("delete", "cluster", "north")
    assert not Cluster.objects.exists() and Event.objects.filter(reason="ClusterDetached").exists()


def test_it_does_not_detach_a_cluster_with_jobs(kubectl, admin):
    a_cluster("north")
    apply(pytorch_job("llama"))
    cycle()
    assert "cannot leave yet" in kubectl.as_user("ada").refused("delete", "cluster", "north")
    assert Cluster.objects.exists()


def test_it_is_for_fleet_admins(kubectl, north):
    person("vera", (Grant.Role.EDITOR, ""))
    vera = kubectl.as_user("vera")
    assert "fleet-admin" in vera.refused("label", "cluster", "north", "tier=gold")
    assert "fleet-admin" in vera.refused("delete", "cluster", "north")
    assert vera.tries("auth", "can-i", "patch", "clusters").stdout.startswith("no - ")
