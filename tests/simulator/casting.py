"""Simulated members for tests, and the verbs to ask them: submit, wait until, what runs where."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fleet.kube.resources import JOBS, PODS, PYTORCH_JOBS, Resource
from fleet.member.client import MemberClient
from simulator.controller_manager import Shape
from simulator.member import SimulatedMember
from simulator.node.nodes import Pool

NAMESPACE = "default"
FAST = 50.0
"""Simulated seconds in a second."""


def shape(nodes: int = 2, gpus: int = 8) -> Shape:
    return Shape((Pool("gpu", nodes, gpus=gpus),), {"topology.kubernetes.io/region": "eu"})


@contextmanager
def member(home: Path, **options: Any) -> Iterator[SimulatedMember]:
    made = SimulatedMember("north", home, options.pop("shape", shape()), **{"time_scale": FAST, **options})
    made.start()
    try:
        yield made
    finally:
        made.stop()


@contextmanager
def calling(made: SimulatedMember) -> Iterator[MemberClient]:
    client = MemberClient(made.access())
    try:
        yield client
    finally:
        client.close()


def template(gpus: int, notes: dict[str, str], labels: dict[str, str] | None = None, **spec: Any) -> dict:
    container = {"name": "pytorch", "image": "i", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    container |= spec.pop("container", {})
    annotations = {f"convoy.dev/{name.replace('_', '-')}": value for name, value in notes.items()}
    return {
        "metadata": {"annotations": annotations, "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }


def pytorch_job(
    name: str = "llama",
    *,
    workers: int = 2,
    gpus: int = 1,
    restart: str = "OnFailure",
    labels: Any = None,
    **notes: str,
) -> dict:
    given = template(gpus, notes, labels)
    roles = {
        "Master": {"restartPolicy": restart, "template": given},
        "Worker": {"restartPolicy": restart, "replicas": workers, "template": given},
    }
    meta = {"name": name, "namespace": NAMESPACE}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": meta,
        "spec": {"pytorchReplicaSpecs": roles},
    }


def batch_job(name: str, spec: dict, **notes: str) -> dict:
    given = template(0, notes, restartPolicy="Never")
    meta = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": given, **spec}}


def submit(client: MemberClient, manifest: dict) -> dict:
    resource = PYTORCH_JOBS if manifest["kind"] == "PyTorchJob" else JOBS
    return client.create(resource.path(NAMESPACE), manifest)


def phases(client: MemberClient) -> dict[str, str]:
    return {p["metadata"]["name"]: p["status"]["phase"] for p in client.list(PODS.path(NAMESPACE))["items"]}


def nodes(client: MemberClient) -> dict[str, str]:
    pods = client.list(PODS.path(NAMESPACE))["items"]
    return {p["metadata"]["name"]: p["spec"].get("nodeName", "") for p in pods}


def truths(client: MemberClient, name: str, resource: Resource = PYTORCH_JOBS) -> list[str]:
    status = client.get(resource.path(NAMESPACE, name)).get("status") or {}
    return [c["type"] for c in status.get("conditions") or [] if c["status"] == "True"]


def until(true: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.03)


def expect(client: MemberClient, name: str, condition: str, resource: Resource = PYTORCH_JOBS) -> None:
    until(lambda: condition in truths(client, name, resource))
