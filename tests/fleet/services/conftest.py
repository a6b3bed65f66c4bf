"""Simulated members on real ports, and a watcher that runs while a test looks at the rows."""

import random
import threading
import time

import pytest
import yaml
from django.utils import timezone

from fleet import signals
from fleet.kube.resources import CRDS, NAMESPACES, NODES, PODS
from fleet.member.client import MemberClient
from fleet.services import clusters, event_handlers, member_clients
from fleet.services.watch_manager import Watchtower
from simulator.apiserver import ApiServer

pytestmark = pytest.mark.django_db(transaction=True)


def eventually(condition, within_s=8.0):
    """What the condition returns once it is true; fails when it does not become true in time."""
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {within_s} s"
        time.sleep(0.02)
    return found


@pytest.fixture
def members(tmp_path):
    """Makes simulated members by name."""
    made = {}

    def make(name, **options):
        server = made[name] = ApiServer(name, tmp_path / name, **options)
        server.start()
        with_namespace(api(server), "kube-system")
        with_namespace(api(server), "team")
        return server

    yield make
    for server in made.values():
        server.stop()


def with_namespace(client, name):
    found = client.list(NAMESPACES.path())["items"]
    if name not in [each["metadata"]["name"] for each in found]:
        client.create(NAMESPACES.path(), {"metadata": {"name": name}})


def api(server):
    return MemberClient(server.access())


@pytest.fixture
def north(members):
    return members("north")


@pytest.fixture(autouse=True)
def only_own_followers(monkeypatch):
    """Other apps' followers are not what is tested here; and links of former servers are of no use."""
    monkeypatch.setattr(event_handlers, "_followers", [])
    monkeypatch.setattr(member_clients, "_clients", {})
    for signal in (signals.cluster_changed, signals.capacity_freed, signals.detaching):
        monkeypatch.setattr(signal, "receivers", [])


def kubeconfig(server):
    return yaml.safe_dump(server.kubeconfig())


def join(server, name=""):
    return clusters.join(name or server.name, kubeconfig(server), by="alice", now=timezone.now())


@pytest.fixture
def watching(transactional_db):
    """Starts the watcher; stops it when the test ends."""
    stops = []

    def start():
        stop = threading.Event()
        thread = threading.Thread(target=Watchtower(stop, random.Random(1)).run, daemon=True)
        thread.start()
        stops.append((stop, thread))

        def end():
            stop.set()
            thread.join(5)

        return end

    yield start
    for stop, thread in stops:
        stop.set()
        thread.join(5)


def add_node(server, name, gpus=8, ready=True, unschedulable=False):
    body = {
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


def add_pod(server, name, node="", gpus=1, labels=None, phase="Running"):
    amounts = {"nvidia.com/gpu": str(gpus), "cpu": "1"}
    container = {"name": "main", "image": "train", "resources": {"limits": amounts, "requests": amounts}}
    body = {
        "metadata": {"name": name, "namespace": "team", "labels": labels or {}},
        "spec": {"containers": [container]} | ({"nodeName": node} if node else {}),
    }
    api(server).create(PODS.path("team"), body)
    set_phase(server, name, phase)


def set_phase(server, name, phase):
    path = PODS.path("team", name, "status")
    api(server).merge_patch(path, {"status": {"phase": phase}})


def bind(server, name, node):
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": "team"}, "target": target}
    api(server).create(PODS.path("team", name, "binding"), body)


def delete_pod(server, name):
    api(server).delete(PODS.path("team", name), grace_s=0)


def serve(server, resource):
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
