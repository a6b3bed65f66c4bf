"""The way to a member through the fleet, with a real kube-apiserver as the member: kubectl and ``kubectl amc`` unchanged."""

import json

import pytest
import yaml
from django.utils import timezone

from fleet.services.clusters import clusters
from tests.realkube.control_plane import RealControlPlane, needs_realkube
from tests.support.amc import Amc, cells
from tests.support.kubectl import served

pytestmark = [*needs_realkube, pytest.mark.django_db(transaction=True)]
PROXY = "/apis/cluster.karmada.io/v1alpha1/clusters/real/proxy"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "c", "image": "x"}]},
}


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    made = RealControlPlane(tmp_path_factory.mktemp("real"))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def ada(transactional_db, plane, admin, tmp_path):
    clusters.join("real", yaml.safe_dump(plane.kubeconfig()), by="test", now=timezone.now())
    with served(tmp_path) as kubectl:
        made = kubectl.as_user("ada")
        made.amc = Amc(kubectl.as_user("ada").file)
        yield made


@pytest.fixture
def inside(ada):
    """Ada's kubectl, with the member behind the fleet for a server."""
    document = yaml.safe_load(ada.file.read_text())
    document["clusters"][0]["cluster"]["server"] += PROXY
    file = ada.file.with_name("inside.kubeconfig")
    file.write_text(yaml.safe_dump(document))
    return type(ada)(file, ada.home)


def test_kubectl_works_on_it_and_amc_shows_it(ada, inside):
    with inside.running("get", "pods", "-w", "-oname") as watching:
        assert "pod/a created" in inside.says("create", "-f", "-", given=json.dumps(POD))
        assert watching.stdout.readline() == "pod/a\n"
    assert "labeled" in inside.says("label", "pod", "a", "team=vision")
    assert "serverside-applied" in inside.says("apply", "--server-side", "-f", "-", given=json.dumps(POD))
    assert "is invalid" in inside.refused("patch", "pod", "a", "-p", '{"metadata":{"labels":{"a":"not ok"}}}')
    header, row = cells(ada.amc.says("get", "po", "-l", "team=vision"))
    assert header == ["NAME", "CLUSTER", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row[:5] == ["a", "real", "0/1", "Pending", "0"]
    assert ada.amc.says("get", "pods.v1", "a", "-oname") == "pod/a\n"
    live = yaml.safe_load(ada.amc.says("get", "pod", "a", "-oyaml"))
    assert live["spec"]["schedulerName"] == "default-scheduler"
    assert "on the pods of fleet jobs at the fleet itself" in inside.refused("exec", "a", "--", "ls")
    assert "deleted" in inside.says("delete", "pod", "a", "--now")


def test_amc_finds_kinds_by_the_members_own_discovery(ada, inside):
    inside.says("create", "deployment", "web", "--image=x")
    assert cells(ada.amc.says("get", "deploy"))[1][:2] == ["web", "real"]
    assert ada.amc.says("get", "deployments.apps", "-oname") == "deployment.apps/web\n"
    assert cells(ada.amc.says("get", "ns"))[0] == ["NAME", "CLUSTER", "STATUS", "AGE", "ADOPTION"]
    assert "Deployment" in ada.amc.says("describe", "deploy/web")
    assert ada.amc.says("delete", "deploy", "web") == 'deployment.apps "web" deleted from cluster real\n'


def test_amc_follows_and_sorts_what_a_real_server_prints(ada, inside):
    for name in ("first", "second"):
        inside.says("create", "configmap", name, f"--from-literal=n={9 if name == 'first' else 1}")
    mine = ("--field-selector", "metadata.name!=kube-root-ca.crt", "--no-headers")
    rows = cells(ada.amc.says("get", "cm", *mine, "--sort-by", ".data.n"))
    assert [row[:2] for row in rows] == [["second", "real"], ["first", "real"]]
    columns = "custom-columns=NAME:.metadata.name,N:.data.n"
    with ada.amc.running("get", "cm", "first", "-w", "--output-watch-events", "--no-headers", "-o", columns) as process:
        assert process.stdout.readline().split() == ["ADDED", "first", "real", "9"]
        inside.says("patch", "configmap", "first", "-p", '{"data":{"n":"10"}}')
        assert process.stdout.readline().split() == ["MODIFIED", "first", "real", "10"]
        inside.says("delete", "configmap", "first")
        assert process.stdout.readline().split() == ["DELETED", "first", "real", "10"]
