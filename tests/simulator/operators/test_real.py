"""The same controllers on a real kube-apiserver that has nothing else: no scheduler, no controllers, no kubelets."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from fleet.kube.resources import JOBS, MPI_JOBS_V1, PODS, PYTORCH_JOBS, Resource
from fleet.member.client import MemberClient
from fleet.member.errors import MemberError
from jobs.kinds import registry
from jobs.kinds.base import marked
from simulator.controller_manager import ControllerManager, Shape
from simulator.machinery.clock import WallClock
from simulator.member import define
from simulator.node.nodes import Pool
from tests.realkube.builders import is_kept
from tests.realkube.control_plane import RealControlPlane, needs_realkube

pytestmark = needs_realkube

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
NOT_SERVED = ("policy", "mpijob-v1", "trainingruntime", "trainjob")
"""A TrainJob is read by its runtime, which the fleet sends with it: see tests/realkube."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemberClient]:
    home = tmp_path_factory.mktemp("kube")
    plane = RealControlPlane(home)
    try:
        plane.start()
        made = MemberClient(plane.access(), pool=32)
        define(made)
        resources = [kind.resource for kind in registry.everything() if kind.resource != MPI_JOBS_V1]
        until(lambda: all(answers(made, partial(made.list, each.path())) for each in resources))
        shape = Shape((Pool("gpu", 2, gpus=8),))
        life = ControllerManager(
            "real", made, home, shape, clock=WallClock(20), start_delay_s=1, version="v1.20.2", collect=True
        )
        life.start()
        yield made
        life.stop()
    finally:
        plane.stop()


def answers(client: MemberClient, call: Callable[[], object]) -> bool:
    try:
        call()
    except MemberError:
        return False
    return True


def until(true: Callable[[], object], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def truths(client: MemberClient, resource: Resource, name: str) -> list[str]:
    status = client.get(resource.path("default", name)).get("status") or {}
    return [c["type"] for c in status.get("conditions") or [] if c["status"] == "True"]


def template(restart: str, **notes: str) -> dict:
    annotations = {f"convoy.dev/{name.replace('_', '-')}": value for name, value in notes.items()}
    container = {"name": "pytorch", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 4}}}
    return {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": restart, "containers": [container]}}


def pytorch_job(name: str, **notes: str) -> dict:
    given = template("Never", **notes)
    roles = {"Master": {"template": given}, "Worker": {"replicas": 2, "template": given}}
    kind = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}
    policy = {"schedulingPolicy": {"minAvailable": 3}}
    return {**kind, "metadata": {"name": name}, "spec": {"runPolicy": policy, "pytorchReplicaSpecs": roles}}


def test_it_runs_a_gang_to_its_end(client: MemberClient) -> None:
    client.create(PYTORCH_JOBS.path("default"), pytorch_job("llama", duration="20s"))
    until(lambda: "Succeeded" in truths(client, PYTORCH_JOBS, "llama"))
    pods = client.list(PODS.path("default"), {"labelSelector": "training.kubeflow.org/job-name=llama"})["items"]
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == ["real-gpu-0", "real-gpu-0", "real-gpu-1"]
    client.delete(PYTORCH_JOBS.path("default", "llama"))
    until(lambda: not client.list(PODS.path("default"))["items"])


def test_it_restarts_and_deletes_gracefully(client: MemberClient) -> None:
    job = pytorch_job("crashy", duration="2s", exit_code="3", exit_code_times="1")
    client.create(PYTORCH_JOBS.path("default"), job)
    until(lambda: "Succeeded" in truths(client, PYTORCH_JOBS, "crashy"))
    pod = client.get(PODS.path("default", "crashy-master-0"))
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 1
    client.create(PYTORCH_JOBS.path("default"), pytorch_job("long", duration="1h"))
    until(lambda: "Running" in truths(client, PYTORCH_JOBS, "long"))
    client.merge_patch(PYTORCH_JOBS.path("default", "long"), {"spec": {"runPolicy": {"suspend": True}}})
    until(lambda: "Suspended" in truths(client, PYTORCH_JOBS, "long"))
    until(lambda: not any(p["metadata"]["name"].startswith("long") for p in client.list(PODS.path())["items"]))


def test_it_completes_a_batch_job(client: MemberClient) -> None:
    spec = {"parallelism": 2, "completions": 3, "template": template("Never", duration="5s")}
    client.create(
        JOBS.path("default"), {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "b"}, "spec": spec}
    )
    until(lambda: "Complete" in truths(client, JOBS, "b"))
    assert client.get(JOBS.path("default", "b"))["status"]["succeeded"] == 3


@pytest.mark.parametrize("example", sorted(p.stem for p in EXAMPLES.glob("*.yaml") if p.stem not in NOT_SERVED))
def test_it_runs_the_example_of_every_kind_whose_fields_the_real_server_keeps(
    client: MemberClient, example: str
) -> None:
    manifest = yaml.safe_load((EXAMPLES / f"{example}.yaml").read_text())
    kind = registry.kind_of(manifest["apiVersion"], manifest["kind"])
    name, path = manifest["metadata"]["name"], kind.resource.path("default")
    sent = marked(kind, manifest, {"example": example})
    assert is_kept(client.create(path, sent)["spec"], sent["spec"])
    pods = kind.read(manifest).pods
    until(lambda: len(running(client, example)) == pods)
    told = partial(client.get, kind.resource.path("default", name))
    until(lambda: kind.read_status(told()["status"], pods).phase in ("Running", "Succeeded"))
    client.delete(kind.resource.path("default", name))
    until(lambda: not running(client, example))


def running(client: MemberClient, example: str) -> list[str]:
    pods = client.list(PODS.path("default"), {"labelSelector": f"example={example}"})["items"]
    return [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Running"]
