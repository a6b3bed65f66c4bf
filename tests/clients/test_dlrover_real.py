"""The stock DLRover master against a real kube-apiserver: real RBAC, real tokens, real admission of the pods it makes.

Real: etcd, kube-apiserver, master, agents, training, processes and network. Simulated: kubelet and DLRover's Go operator.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from fleet.kube.resources import CONFIG_MAPS, ELASTIC_JOBS, PODS, SERVICE_ACCOUNTS, VOLUME_CLAIMS
from fleet.member.client import MemberClient
from jobs.kinds import registry
from simulator.controller_manager import ControllerManager, Shape
from simulator.machinery.clock import WallClock
from simulator.member import define
from simulator.node.nodes import Pool
from tests.clients.builders import TRAINING, manifest
from tests.realkube.control_plane import RealControlPlane, answers, needs_realkube
from tests.simulator.casting import until
from tests.support import process_logs
from tests.support.isolation import needs_network

pytestmark = [pytest.mark.clients, *needs_realkube, needs_network]

PATIENCE_S = 240.0
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
RULES = [
    {"apiGroups": [""], "resources": ["pods", "services", "configmaps"], "verbs": ["*"]},
    {"apiGroups": ["elastic.iml.github.io"], "resources": ["elasticjobs"], "verbs": ["get", "list", "watch"]},
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def client(home: Path, dlrover: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemberClient]:
    monkeypatch.setenv("CONVOY_PROCESS_PODS", "*")
    monkeypatch.setenv("CONVOY_PROCESS_IMAGES", f"training:torch={dlrover}")
    plane = RealControlPlane(home / "plane")
    try:
        plane.start()
        client = MemberClient(plane.access(), pool=32)
        define(client)
        until(lambda: answers(lambda: client.list(ELASTIC_JOBS.path())), 60)
        shape = Shape((Pool("cpu", 2, "32", "128Gi"),), api_host="kubernetes.default.svc")
        life = ControllerManager(
            "real", client, home, shape, clock=WallClock(1), start_delay_s=0, version="v1.20.2", collect=True
        )
        life.start()
        yield client
        life.stop()
        client.close()
    finally:
        plane.stop()


def grant(client: MemberClient) -> None:
    """What DLRover's chart sets up for the master's ServiceAccount."""
    client.create(SERVICE_ACCOUNTS.path("default"), {"metadata": {"name": "default"}})
    client.create(f"{RBAC}/roles", {"metadata": {"name": "dlrover"}, "rules": RULES})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "dlrover"}
    subjects = [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]
    client.create(f"{RBAC}/rolebindings", {"metadata": {"name": "dlrover"}, "roleRef": role, "subjects": subjects})


def as_sent(steps: int) -> dict:
    """The guide's manifest as Convoy sends it, its pods marked to run as processes."""
    job = yaml.safe_load(manifest("persistentVolumeClaim: {claimName: disk}", steps))
    job["metadata"]["namespace"] = "default"
    registry.kind_of(job["apiVersion"], job["kind"]).set_defaults(job)
    for spec in job["spec"]["replicaSpecs"].values():
        spec["template"].setdefault("metadata", {})["annotations"] = {"convoy.dev/run": "process"}
    return job


def steps(home: Path, event: str) -> list[int]:
    return [record["step"] for record in process_logs.records(home / "logs") if record["event"] == event]


def test_it_trains_to_the_end_over_a_deleted_worker(client: MemberClient, home: Path) -> None:
    grant(client)
    client.create(CONFIG_MAPS.path("default"), {"metadata": {"name": "code"}, "data": {"train.py": TRAINING}})
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    client.create(VOLUME_CLAIMS.path("default"), {"metadata": {"name": "disk"}, "spec": claim})
    client.create(ELASTIC_JOBS.path("default"), as_sent(60))
    until(lambda: steps(home, "checkpoint"), PATIENCE_S)
    client.delete(PODS.path("default", "llama-edljob-worker-1"), grace_s=0)
    until(lambda: max(steps(home, "start"), default=0) >= 5, PATIENCE_S)
    until(lambda: steps(home, "end") == [60, 60], PATIENCE_S)  # before the pods of the ended job go, and their logs
    job = ELASTIC_JOBS.path("default", "llama")
    until(lambda: (client.get(job).get("status") or {}).get("phase") == "Succeeded", PATIENCE_S)
