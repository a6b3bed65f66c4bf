"""The stock DLRover 0.6.1, unmodified, over the fleet: its own master, launched by the operator's rules, and its own agents.

Real: Convoy's services and watches, DLRover's master, agents and their training, their processes and network. Simulated: the
member's API server, its kubelet, and DLRover's Go operator, which makes the master's pod.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fleet.kube.resources import NODES
from jobs.models import RuntimeFact
from jobs.runtime.fact import Kind
from simulator import fault_parser
from tests.clients.builders import TRAINING, manifest
from tests.support import process_logs
from tests.support.isolation import needs_network
from tests.support.processor import Waiting
from tests.support.world import World

pytestmark = [pytest.mark.clients, pytest.mark.django_db(transaction=True), needs_network]

PATIENCE_S = 240.0
GRACE_S = 10.0
"""Of the manifest."""
POLICY = """
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata: {name: elastic, namespace: dlrover}
spec:
  propagateDeps: true
  placement: {replicaScheduling: {replicaSchedulingType: Divided, customSchedulingType: Gang}}
  failover: {cluster: {tolerationSeconds: 1, purgeMode: Immediately}}
  resourceSelectors: [{apiVersion: elastic.iml.github.io/v1alpha1, kind: ElasticJob}]
"""
CODE = yaml.safe_dump(
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "code", "namespace": "dlrover"},
        "data": {"train.py": TRAINING},
    }
)
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk, namespace: dlrover}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}
"""
ON_CLAIM, ON_SCRATCH = "persistentVolumeClaim: {claimName: disk}", "emptyDir: {}"


@pytest.fixture
def fleet(world: World, dlrover: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("CONVOY_PROCESS_PODS", "*")
    monkeypatch.setenv("CONVOY_PROCESS_IMAGES", f"training:torch={dlrover}")
    world.member("north", 0, time_scale=1.0)
    yield world


def steps(world: World, event: str, member: str = "north") -> list[int]:
    return sorted(
        record["step"] for record in process_logs.records(world.home / member / "logs") if record["event"] == event
    )


def wait(world: World, holds: Callable[[], object], words: str) -> None:
    world.until(lambda: bool(holds()), words, patience_s=PATIENCE_S)


def workers(world: World, member: str = "north") -> list[dict[str, Any]]:
    pods = world.pods(member)
    return [pod for pod in pods if pod["metadata"]["labels"].get("elasticjob.dlrover/replica-type") == "worker"]


def committed(world: World) -> int:
    """The step of the last checkpoint that is whole on disk, by the file of DLRover that names it."""
    tracker = world.home / "north" / "volumes" / "dlrover" / "disk" / "dlrover_latest.txt"
    return int(tracker.read_text() or 0) if tracker.exists() else 0


def starts(world: World, ranks: int) -> list[int]:
    """The steps from which ranks of a world of so many have started."""
    records = process_logs.records(world.home / "north" / "logs")
    return [each["step"] for each in records if each["event"] == "start" and each["world"] == ranks]


def let_in(world: World, *, pods: bool) -> None:
    """Whether nodes take pods: the one that replaces a lost worker has room, or none."""
    client = world.clients["north"]
    for node in client.list(NODES.path())["items"]:
        client.merge_patch(NODES.path(name=node["metadata"]["name"]), {"spec": {"unschedulable": not pods}})


def facts(world: World, kind: Kind) -> list[dict[str, Any]]:
    return [row.data for row in RuntimeFact.objects.filter(job=world.job("llama")) if row.data["kind"] == kind]


def test_the_guides_manifest_trains_to_the_end_over_a_lost_process_and_a_lost_worker(fleet: World) -> None:
    flags = "--max_restarts=3 --rdzv-conf join_timeout=240,lastcall_timeout=5"
    fleet.apply(
        POLICY, CODE, CLAIM, manifest(ON_CLAIM, 20, nodes="1:2", flags=flags, lost_at="13", held="yes", to_disk="20")
    )
    wait(fleet, lambda: 10 in starts(fleet, 2), "both ranks go on from what was in memory alone")
    let_in(fleet, pods=False)
    fleet.members["north"].disturb(fault_parser.parse(["crash-pod", "dlrover/llama-edljob-worker-1", "137"]))
    wait(fleet, lambda: max(starts(fleet, 1), default=0) >= 10, "the worker that is left goes on alone")
    alone = max(starts(fleet, 1))
    wait(fleet, lambda: committed(fleet) > alone, "what it did alone is on disk")
    let_in(fleet, pods=True)
    wait(fleet, lambda: max(starts(fleet, 2)) > alone, "the new worker has joined it")
    assert "llama-edljob-worker-2" in {pod["metadata"]["name"] for pod in workers(fleet)}
    wait(
        fleet,
        lambda: {each["world_size"] for each in facts(fleet, Kind.RENDEZVOUS)} >= {1, 2},
        "the fleet knows the sizes",
    )
    (fleet.home / "north" / "volumes" / "dlrover" / "disk" / "finish").touch()
    wait(fleet, lambda: len(steps(fleet, "end")) == 2, "both ranks end; their logs go with the pods of an ended job")
    fleet.expect("llama", "Succeeded", patience_s=PATIENCE_S)
    assert fleet.job("llama").attempt == 1, "the master replaced the worker: the fleet had nothing to do"
    assert "memory" in {each["tier"] for each in facts(fleet, Kind.CHECKPOINT)}


def test_a_suspended_job_leaves_no_pod_and_goes_on_from_its_checkpoint(fleet: World) -> None:
    fleet.apply(POLICY, CODE, CLAIM, manifest(ON_CLAIM, 60))
    wait(fleet, lambda: committed(fleet), "a checkpoint is on disk")
    saved = committed(fleet)
    fleet.suspend("llama")
    waiting, asked_at = Waiting(), time.monotonic()
    wait(fleet, lambda: not fleet.pods("north"), "no pod is left")
    assert time.monotonic() - asked_at <= GRACE_S + 5 * waiting.slowdown(), "within its grace and 5 s"
    fleet.expect("llama", "Suspended")
    fleet.resume("llama")
    wait(fleet, lambda: steps(fleet, "end") == [60, 60], "both ranks end")
    assert min(steps(fleet, "start")) >= saved
    assert fleet.expect("llama", "Succeeded", patience_s=PATIENCE_S).attempt == 2


def test_a_job_of_a_lost_cluster_trains_to_the_end_on_another(fleet: World) -> None:
    fleet.apply(POLICY, CODE, manifest(ON_SCRATCH, 30))
    wait(fleet, lambda: steps(fleet, "start"), "it trains")
    fleet.member("south", 0, time_scale=1.0)
    fleet.members["north"].faults.away = True
    wait(fleet, lambda: steps(fleet, "end", "south") == [30, 30], "both ranks end")
    names = {pod["metadata"]["name"] for pod in workers(fleet, "south")}
    assert names == {"llama-edljob-worker-0", "llama-edljob-worker-1"}
    assert fleet.expect("llama", "Succeeded", on="south", patience_s=PATIENCE_S).attempt == 2
