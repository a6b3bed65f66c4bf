"""Simulated API servers without controllers, and what a test writes into them."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.utils import timezone

from fleet import metrics
from fleet.kube.resources import CRDS, NAMESPACES, NODES, PODS, Resource
from fleet.member.client import MemberClient
from fleet.models import Cluster
from fleet.services.clusters import clusters
from simulator.apiserver import ApiServer
from tests.support.kubectl import Person

PATIENCE_S = 60.0


def eventually(condition: Callable[[], Any], within_s: float = PATIENCE_S) -> Any:
    """What the condition returns once it is true; fails when it does not become true in time."""
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {within_s} s"
        time.sleep(0.02)
    return found


def with_namespace(client: MemberClient, name: str) -> None:
    found = client.list(NAMESPACES.path())["items"]
    if name not in [each["metadata"]["name"] for each in found]:
        client.create(NAMESPACES.path(), {"metadata": {"name": name}})


def api(server: ApiServer) -> MemberClient:
    return MemberClient(server.access())


def kubeconfig(server: ApiServer) -> str:
    return yaml.safe_dump(server.kubeconfig())


def join(server: ApiServer, name: str = "") -> Cluster:
    return clusters.join(name or server.name, kubeconfig(server), by="alice", now=timezone.now())


def add_node(server: ApiServer, name: str, gpus: int = 8, ready: bool = True, unschedulable: bool = False) -> None:
    body: dict[str, Any] = {
        "metadata": {"name": name},
        "spec": {"unschedulable": unschedulable},
        "status": {
            "allocatable": {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": str(gpus), "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }
    client = api(server)
    client.create(NODES.path(), body)
    client.merge_patch(NODES.path(name=name, subresource="status"), {"status": body["status"]})


def add_pod(
    server: ApiServer,
    name: str,
    node: str = "",
    gpus: int = 1,
    labels: dict[str, str] | None = None,
    phase: str = "Running",
) -> None:
    amounts = {"nvidia.com/gpu": str(gpus), "cpu": "1"}
    container = {"name": "main", "image": "train", "resources": {"limits": amounts, "requests": amounts}}
    body = {
        "metadata": {"name": name, "namespace": "team", "labels": labels or {}},
        "spec": {"containers": [container]} | ({"nodeName": node} if node else {}),
    }
    api(server).create(PODS.path("team"), body)
    set_phase(server, name, phase)


def set_phase(server: ApiServer, name: str, phase: str) -> None:
    path = PODS.path("team", name, "status")
    api(server).merge_patch(path, {"status": {"phase": phase}})


def bind(server: ApiServer, name: str, node: str) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": "team"}, "target": target}
    api(server).create(PODS.path("team", name, "binding"), body)


def delete_pod(server: ApiServer, name: str) -> None:
    api(server).delete(PODS.path("team", name), grace_s=0)


def serve(server: ApiServer, resource: Resource) -> None:
    """Makes the member serve a kind of training job."""
    names = {"plural": resource.plural, "singular": resource.kind.lower(), "kind": resource.kind}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    spec = {
        "group": resource.group,
        "names": names | {"listKind": f"{resource.kind}List"},
        "scope": "Namespaced",
        "versions": [{"name": resource.version, "served": True, "storage": True, "schema": schema}],
    }
    api(server).create(CRDS.path(), {"metadata": {"name": f"{resource.plural}.{resource.group}"}, "spec": spec})


def requests_of(name: str) -> int:
    """The requests that this process has made of a member so far, as its metrics count them."""
    samples = [sample for metric in metrics.MEMBER_REQUEST_SECONDS.collect() for sample in metric.samples]
    return int(sum(s.value for s in samples if s.name.endswith("_count") and s.labels["cluster"] == name))


PROXY = "/apis/cluster.karmada.io/v1alpha1/clusters/{}/proxy"


def through(person_: Person, cluster: str = "north") -> Person:
    """The same person, whose server is the member behind the fleet."""
    document = yaml.safe_load(person_.file.read_text())
    document["clusters"][0]["cluster"]["server"] += PROXY.format(cluster)
    person_.file.write_text(yaml.safe_dump(document))
    return person_


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Callable[..., ApiServer]]:
    """Makes simulated members by name."""
    made: dict[str, ApiServer] = {}

    def make(name: str, **options: Any) -> ApiServer:
        server = made[name] = ApiServer(name, tmp_path / name, **options)
        server.start()
        with_namespace(api(server), "kube-system")
        with_namespace(api(server), "team")
        return server

    yield make
    for server in made.values():
        server.stop()


@pytest.fixture
def north(members: Callable[..., ApiServer]) -> ApiServer:
    return members("north")
