"""Stock transformers and Kubeflow SDK report to the fleet; a reclaim that they end with exit 0 and 100 % is no success.

Real: both clients, the supervisor and its endpoint, Convoy's services and watches, processes, network and TLS. Simulated: the
member's API server, kubelet and operator.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from fleet.models import Event
from jobs.kinds.progress_reports import WANTED
from jobs.models import Attempt, Job, Progress
from simulator import fault_parser
from supervisor.core.facts import NOTICE_BY
from tests.clients.environments import environment
from tests.support import supervised
from tests.support.isolation import needs_network
from tests.support.quotas import apply_tree, gpus, leaf
from tests.support.world import POLICY, World

pytestmark = [pytest.mark.clients, pytest.mark.django_db(transaction=True), needs_network]

PATIENCE_S, STEPS = 240.0, 150
SCRIPT = Path(__file__).with_name("finetune.py").read_text()
CODE = yaml.safe_dump(
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code"}, "data": {"train.py": SCRIPT}}
)
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk, annotations: {convoy.dev/data-placement: Anywhere}}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}
"""


def job() -> str:
    """One worker, which fills a node; its process group gets SIGTERM when the node is reclaimed."""
    env = {"STEPS": str(STEPS), "STEP_S": "0.1", "OUT": "/disk/out"}
    container = {
        "name": "pytorch",
        "image": "training:transformers",
        "command": ["python", "/code/train.py"],
        "env": [{"name": name, "value": text} for name, text in env.items()],
        "volumeMounts": [{"name": "code", "mountPath": "/code"}, {"name": "disk", "mountPath": "/disk"}],
        "resources": {"limits": {"nvidia.com/gpu": 4}},
    }
    volumes = [
        {"name": "code", "configMap": {"name": "code"}},
        {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}},
    ]
    template = {
        "metadata": {"annotations": {"convoy.dev/run": "process", NOTICE_BY: "sigterm"}},
        "spec": {"containers": [container], "volumes": volumes},
    }
    body = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {
            "name": "tune",
            "labels": {"quota.scheduling.alibabacloud.com/name": "a"},
            "annotations": {WANTED: "true"},
        },
        "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "restartPolicy": "Never", "template": template}}},
    }
    return yaml.safe_dump(body)


@pytest.fixture
def fleet(world: World, dlrover: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    client = environment("transformers", beside=dlrover)
    for name, value in {**supervised.ENVIRONMENT, "CONVOY_PROCESS_IMAGES": f"training:transformers={client}"}.items():
        monkeypatch.setenv(name, value)
    world.member("north", 4, 4, time_scale=1.0)
    supervised.supervise(
        world.clients["north"], lambda has: world.until(lambda: bool(has()), "it acts", patience_s=PATIENCE_S)
    )
    apply_tree(leaf("a", **gpus(8, 8)))
    yield world


def progress() -> Progress | None:
    return Progress.objects.filter(job__name="tune").first()


def logged(world: World) -> str:
    return "".join(file.read_text() for file in sorted((world.home / "north" / "logs").glob("*/*.log")))


def test_it_reports_is_stopped_by_a_reclaim_goes_on_and_ends(fleet: World) -> None:
    fleet.apply(POLICY, CODE, CLAIM, job())
    fleet.until(lambda: (row := progress()) is not None and (row.step or 0) > 0, "it reports", patience_s=PATIENCE_S)
    row = progress()
    assert row is not None and (row.attempt, row.total, row.percent_done) == (1, STEPS, 100 * row.step // STEPS)
    text = logged(fleet)
    assert "sdk True" in text, "the Kubeflow SDK was answered with 200"
    assert "begins anew" in text
    (pod,) = [each for each in fleet.pods("north") if each["metadata"]["name"].startswith("tune")]
    fleet.members["north"].disturb(fault_parser.parse(["reclaim", pod["spec"]["nodeName"], "60"]))
    fleet.until(lambda: Attempt.objects.filter(outcome="Reclaimed").exists(), "it is stopped", patience_s=PATIENCE_S)
    assert fleet.job("tune").state != Job.State.SUCCEEDED
    fleet.expect("tune", "Succeeded", patience_s=PATIENCE_S)
    text = logged(fleet)  # of the second pod: that of the first went with it
    assert "begins again" in text and f"ended at step {STEPS}" in text
    assert fleet.job("tune").attempt == 2 and not Event.objects.filter(reason="ProgressNotReported").exists()
