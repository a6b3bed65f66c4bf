"""kubeai 0.1.0, unmodified: a process that uses it hears that its node is taken back, and saves; another one is told nothing.

Real: kubeai, the supervisor, their processes and network. Simulated: the member's API server, kubelet and operator.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from fleet.kube.resources import PODS, PYTORCH_JOBS
from fleet.member.client import MemberClient, Object
from jobs.runtime import notices as notice
from simulator.fault_parser import parse
from simulator.member import SimulatedMember
from supervisor.core.facts import MANAGED
from tests.clients.environments import environment
from tests.simulator import casting
from tests.simulator.casting import NAMESPACE, calling, member, until
from tests.support import supervised
from tests.support.isolation import needs_network

pytestmark = [pytest.mark.clients, needs_network]

PATIENCE_S = 120.0
SCRIPT = """
import sys, time
import kubeai.elastic as kubeai
kubeai.init()
print("trains", flush=True)
step = 0
while True:
    step += 1
    time.sleep(0.1)
    if not kubeai.check_alive():
        print("CKPT step", step, flush=True)
        sys.exit(-1)
"""


@pytest.fixture
def north(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[SimulatedMember, MemberClient]]:
    settings = {**supervised.ENVIRONMENT, "CONVOY_PROCESS_IMAGES": f"training:kubeai={environment('kubeai')}"}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with (
        member(tmp_path, shape=casting.shape(nodes=2, gpus=2), time_scale=1.0, start_delay_s=0.05) as made,
        calling(made) as client,
    ):
        supervised.supervise(client, partial(until, seconds=PATIENCE_S))
        yield made, client


def job(name: str, *, managed: bool) -> Object:
    """Two workers, one of which is enough; they fill two nodes, or half of each."""
    container = {"image": "training:kubeai", "command": ["python", "-c", SCRIPT]}
    pod = casting.template(1, {"run": "process"}, container=container, restartPolicy="Never")
    if managed:
        pod["metadata"]["annotations"][MANAGED] = "true"
    worker = {"replicas": 2, "restartPolicy": "OnFailure", "template": pod}
    spec = {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 2}, "pytorchReplicaSpecs": {"Worker": worker}}
    meta = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": meta, "spec": spec}


def log(client: MemberClient, pod: str) -> str:
    return client.get_text(PODS.path(NAMESPACE, pod, "log"))


def records(client: MemberClient, name: str) -> list[notice.JobRecord]:
    meta = client.get(PYTORCH_JOBS.path(NAMESPACE, name))["metadata"]
    return list(notice.read_records((meta.get("annotations") or {}).get(notice.NOTICES), meta["uid"]).values())


def has_left(client: MemberClient, name: str) -> bool:
    found = records(client, name)
    return bool(found) and all(entry.left for entry in found[0].pods.values())


def test_it_hears_the_notice_saves_and_leaves_and_only_where_it_is_annotated(north) -> None:
    made, client = north
    for name, managed in (("told", True), ("other", False)):
        casting.submit(client, job(name, managed=managed))
    pods = [f"{name}-worker-{index}" for name in ("told", "other") for index in range(2)]
    until(lambda: casting.phases(client) == dict.fromkeys(pods, "Running"), PATIENCE_S)
    until(lambda: all("trains" in log(client, pod) for pod in pods), PATIENCE_S)
    at = casting.nodes(client)
    node = at["told-worker-1"]
    leaving = {pod for pod in pods if at[pod] == node}
    made.disturb(parse(["reclaim", node, "45"]))
    until(lambda: has_left(client, "told"), 40)
    (record,) = records(client, "told")
    assert set(record.pods) == {pod for pod in leaving if pod.startswith("told")}
    assert all(entry.heard and entry.left and entry.left < record.notice.deadline for entry in record.pods.values())
    assert records(client, "other") == []
    for pod in set(pods) - set(record.pods):
        assert "stop" not in log(client, pod).lower() and "CKPT" not in log(client, pod)
