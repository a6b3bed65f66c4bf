"""Reclaims in a simulated member, where the supervisor is a pod with its own service account and trainers are processes."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from fleet.kube.resources import NODES, PODS, PYTORCH_JOBS
from fleet.member.client import MemberClient
from jobs.runtime import notices as notice
from simulator.fault_parser import parse
from simulator.member import SimulatedMember
from supervisor.core.facts import MANAGED
from tests.simulator import casting
from tests.simulator.casting import NAMESPACE, calling, member, until
from tests.support import supervised
from tests.support.isolation import needs_network

KUBEAI = """
import http.server, sys, threading, time
class Stop(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global alive
        alive = alive and self.path != "/stop"
        self.send_response(200)  # never flushed: what arrives is "ok" alone
        self.wfile.write(b"ok")
    def log_message(self, *words): pass
alive = True
threading.Thread(target=http.server.HTTPServer(("0.0.0.0", 9009), Stop).serve_forever, daemon=True).start()
print("trains", flush=True)
while alive: time.sleep(0.02)
print("CKPT", flush=True)
sys.exit(-1)
"""
pytestmark = [needs_network, pytest.mark.processes]


@pytest.fixture
def north(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[SimulatedMember, MemberClient]]:
    for name, value in supervised.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with (
        member(tmp_path, shape=casting.shape(nodes=3), time_scale=1.0, start_delay_s=0.05) as made,
        calling(made) as client,
    ):
        supervised.supervise(client, partial(until, seconds=60))
        yield made, client


def elastic(least: int, **container: object) -> dict:
    command = ["python", "-c", KUBEAI]
    pod = casting.template(
        5, {"run": "process"}, container={"command": command, **container}, restartPolicy="OnFailure"
    )
    pod["metadata"]["annotations"][MANAGED] = "true"
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "bert", "namespace": NAMESPACE},
        "spec": {
            "elasticPolicy": {"minReplicas": least, "maxReplicas": 3},
            "pytorchReplicaSpecs": {"Worker": {"replicas": 3, "restartPolicy": "OnFailure", "template": pod}},
        },
    }


def trains(client: MemberClient) -> bool:
    names = [f"bert-worker-{index}" for index in range(3)]
    return casting.phases(client) == dict.fromkeys(names, "Running") and all(
        "trains" in client.get_text(PODS.path(NAMESPACE, name, "log")) for name in names
    )


def records(client: MemberClient) -> list[notice.JobRecord]:
    meta = client.get(PYTORCH_JOBS.path(NAMESPACE, "bert"))["metadata"]
    return list(notice.read_records((meta.get("annotations") or {}).get(notice.NOTICES), meta["uid"]).values())


def test_it_has_a_worker_save_before_its_node_goes_and_leaves_the_others_alone(north) -> None:
    made, client = north
    casting.submit(client, elastic(least=2))
    until(lambda: trains(client), 120)
    at = casting.nodes(client)["bert-worker-1"]
    began = time.time()
    made.disturb(parse(["reclaim", at, "20"]))
    until(lambda: records(client) and all(pod.left for pod in records(client)[0].pods.values()))
    (record,) = records(client)
    (entry,) = record.pods.values()
    assert (record.notice.scope, record.notice.cause, record.notice.node) == (notice.Scope.PODS, "reclaim", at)
    assert list(record.pods) == ["bert-worker-1"] and entry.heard is not None and entry.left is not None
    assert entry.left < record.notice.deadline and abs(record.notice.deadline - began - 20) < 15
    until(lambda: casting.phases(client).get("bert-worker-1") == "Pending")
    assert casting.phases(client)["bert-worker-0"] == casting.phases(client)["bert-worker-2"] == "Running"
    until(lambda: at not in {node["metadata"]["name"] for node in client.list(NODES.path())["items"]}, 120)
    made.disturb(parse(["node-up", at]))
    until(lambda: trains(client), 120)


def test_it_has_all_workers_save_and_suspends_the_job_below_its_min(north) -> None:
    made, client = north
    casting.submit(client, elastic(least=3))
    until(lambda: trains(client), 120)
    made.disturb(parse(["reclaim", casting.nodes(client)["bert-worker-0"], "60"]))
    until(lambda: "Suspended" in casting.truths(client, "bert"))
    until(lambda: not casting.phases(client))
    until(lambda: records(client)[0].stopped)
    (record,) = records(client)
    assert record.notice.scope is notice.Scope.JOB and record.stopped is not None
    assert sorted(record.pods) == [f"bert-worker-{index}" for index in range(3)]
    assert all(entry.heard is not None for entry in record.pods.values())
    assert record.stopped < record.notice.deadline
