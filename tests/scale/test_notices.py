"""Benchmark ``notices`` (G5): the supervisor beside 1,000 managed pods, of which 100 are reclaimed at one moment.

The API server is a real one (`KUBEBUILDER_ASSETS`), the pods are objects whose addresses a process listens at as kubeai does. A
notice takes from the request that taints the node to the moment at which its pod hears the stop. ``CONVOY_BENCH_PODS`` and
``CONVOY_BENCH_S``, the seconds at rest, change the size.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deploy.bootstrap.home import ROOT
from fleet.kube.resources import LEASES, NAMESPACES, NODES, PODS, PYTORCH_JOBS
from fleet.member.client import MemberClient
from jobs.runtime.notices import HEARD
from simulator.member import define
from supervisor.core.facts import MANAGED
from tests.realkube.control_plane import RealControlPlane, answers, needs_realkube
from tests.simulator.casting import until

pytestmark = [pytest.mark.bench, *needs_realkube]
PODS_, REST_S = int(os.environ.get("CONVOY_BENCH_PODS", "1000")), float(os.environ.get("CONVOY_BENCH_S", "60"))
JOBS = 10
"""Each has one pod on each node, so that it goes on when a tenth of the nodes is taken."""
NODES_ = PODS_ // JOBS
RECLAIMED = NODES_ // 10
TAINT = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
MOST_S, MOST_MIB, MOST_CORES = 1.0, 100, 0.1
PATIENCE_S = 300.0
Report = Callable[[str, dict[str, Any]], None]


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[RealControlPlane]:
    made = RealControlPlane(tmp_path / "plane")
    made.start()
    yield made
    made.stop()


@pytest.fixture
def client(plane: RealControlPlane) -> Iterator[MemberClient]:
    made = MemberClient(plane.access(), pool=32)
    define(made)
    until(lambda: answers(lambda: made.list(PYTORCH_JOBS.path())), PATIENCE_S)
    fill(made)
    yield made
    made.close()


def address(index: int) -> str:
    return f"127.90.{index // 250}.{index % 250 + 1}"


def fill(client: MemberClient) -> None:
    client.create(NAMESPACES.path(), {"metadata": {"name": "arena-system"}})
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda n: client.create(NODES.path(), {"metadata": {"name": f"n{n}"}}), range(NODES_)))
        owners = list(threads.map(lambda n: client.create(PYTORCH_JOBS.path("default"), job(f"job{n}")), range(JOBS)))
        list(threads.map(lambda n: run(client, n, owners[n % JOBS]["metadata"]), range(PODS_)))


def job(name: str) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "pytorch", "image": "example.com/train"}]}}
    worker = {"replicas": NODES_, "template": template}
    spec = {"elasticPolicy": {"minReplicas": 1, "maxReplicas": NODES_}, "pytorchReplicaSpecs": {"Worker": worker}}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name}, "spec": spec}


def run(client: MemberClient, index: int, owner: Mapping[str, Any]) -> None:
    name = f"{owner['name']}-worker-{index // JOBS}"
    labels = {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": str(index // JOBS)}
    of = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": owner["name"], "uid": owner["uid"]}
    metadata = {"name": name, "labels": labels, "annotations": {MANAGED: "true"}}
    metadata["ownerReferences"] = [{**of, "controller": True}]
    spec = {"nodeName": f"n{index // JOBS}", "containers": [{"name": "pytorch", "image": "example.com/train"}]}
    client.create(PODS.path("default"), {"metadata": metadata, "spec": spec})
    ip = address(index)
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    container = {"name": "pytorch", "image": "x", "imageID": "x", "ready": True, "restartCount": 0, "state": state}
    status = {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "containerStatuses": [container]}
    client.merge_patch(PODS.path("default", name, "status"), {"status": status})


@pytest.fixture
def listeners() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.scale.stop_listeners"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdin and process.stdout
    process.stdin.write("".join(f"{line}\n" for line in (PODS_, *map(address, range(PODS_)))))
    process.stdin.flush()
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def supervisor(plane: RealControlPlane, client: MemberClient, tmp_path: Path) -> Iterator[int]:
    """Its process id, once it has its lease."""
    (tmp_path / "kubeconfig").write_text(json.dumps(plane.kubeconfig()))
    command = [sys.executable, "-m", "supervisor.main", "--kubeconfig", str(tmp_path / "kubeconfig")]
    with (tmp_path / "supervisor.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT)
    try:
        until(lambda: client.list(LEASES.path("arena-system"))["items"], PATIENCE_S)
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def taint(client: MemberClient, node: int) -> float:
    at = time.time()
    client.merge_patch(NODES.path(name=f"n{node}"), {"spec": {"taints": [TAINT]}})
    return at


def have_heard(client: MemberClient, nodes: int) -> bool:
    """Whether all pods of so many nodes have."""
    pods = client.list(PODS.path("default"))["items"]
    return sum(HEARD in pod["metadata"]["annotations"] for pod in pods) >= nodes * JOBS


def test_a_hundred_pods_that_are_reclaimed_at_once_hear_it_within_a_second(
    client: MemberClient, supervisor: int, listeners: subprocess.Popen[str], report: Report
) -> None:
    taint(client, NODES_ - 1)  # what is heard there shows that it has read all, and is not measured
    until(lambda: have_heard(client, 1), PATIENCE_S)
    before, began = processor_s(supervisor), time.monotonic()
    time.sleep(REST_S)
    cores = (processor_s(supervisor) - before) / (time.monotonic() - began)
    before = processor_s(supervisor)
    with ThreadPoolExecutor(RECLAIMED) as threads:
        tainted = dict(enumerate(threads.map(lambda node: taint(client, node), range(RECLAIMED))))
    until(lambda: have_heard(client, RECLAIMED + 1), PATIENCE_S)
    busy_s = round(processor_s(supervisor) - before, 2)
    heard: dict[str, float] = json.loads(listeners.communicate()[0])
    first = {address(index) for index in range((NODES_ - 1) * JOBS, NODES_ * JOBS)}
    expected = {address(index): tainted[index // JOBS] for index in range(RECLAIMED * JOBS)}
    took = [heard[ip] - at for ip, at in expected.items()]
    p50, p99 = (round(float(np.percentile(took, part)), 3) for part in (50, 99))
    mib, sizes = round(peak_mib(supervisor)), {"pods": PODS_, "reclaimed": len(expected)}
    figures = {
        "p50_s": p50,
        "p99_s": p99,
        "most_s": round(max(took), 3),
        "supervisor_mib": mib,
        "supervisor_cpu_s": busy_s,
    }
    met = p99 <= MOST_S and mib <= MOST_MIB and cores <= MOST_CORES
    report("notices", {**sizes, **figures, "cores_at_rest": round(cores, 3), "met": met})
    assert heard.keys() == expected.keys() | first, "no other pod hears a stop"
    assert met
