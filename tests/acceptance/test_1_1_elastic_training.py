"""1.1: elastic training with TrainingJobs, as far as it concerns the kind."""

from pathlib import Path

import pytest
import yaml

from fleet.kube.resources import NAMESPACES, PODS
from fleet.models import Node
from tests.acceptance.builders import POLICY
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "trainingjob.yaml"


def training_job(*, workers: int = 8, duration: str = "1h", exit_code: str = "0", **spec: object) -> str:
    made = yaml.safe_load(EXAMPLE.read_text())
    made["spec"] |= spec
    roles = made["spec"]["etReplicaSpecs"]
    roles["worker"] |= {"replicas": workers, "minReplicas": 1, "maxReplicas": 128}
    notes = {"convoy.dev/duration": duration, "convoy.dev/exit-code": exit_code}
    roles["launcher"]["template"]["metadata"]["annotations"] = notes
    return yaml.safe_dump(made)


def test_1_1_1_best_effort_pods_are_counted_as_reclaimable_in_a_column_of_their_own(world, convoy):
    world.member("north", 8, 8)
    job = yaml.safe_load(pytorch_job("bert", workers=1, gpus=2, duration="1h"))
    worker = job["spec"]["pytorchReplicaSpecs"]["Worker"]
    labels = {"alibabacloud.com/compute-qos": "best-effort"}
    worker["template"] = {**worker["template"], "metadata": {**worker["template"]["metadata"], "labels": labels}}
    world.apply(POLICY, yaml.safe_dump(job))
    world.expect("bert", "Running")
    gpu = "nvidia.com/gpu"
    world.until(lambda: sum(node.reclaimable.get(gpu, 0) for node in Node.objects.all()) == 2, "the worker is counted")
    assert sum(node.requested.get(gpu, 0) for node in Node.objects.all()) == 4
    head, *rows = [line.split() for line in convoy("top", "node").out.splitlines()[:3]]
    columns = head.index("GPU(Allocated)"), head.index("GPU(Reclaimable)")
    assert [sum(int(row[column]) for row in rows) for column in columns] == [4, 2]


def test_1_1_3_the_supervisor_of_each_cluster_is_listed_among_the_add_ons(world, convoy):
    for name in ("north", "south", "west"):
        world.member(name, 1)
    pod = {
        "metadata": {"name": "elastic-job-supervisor-x", "labels": {"app": "elastic-job-supervisor"}},
        "spec": {"containers": [{"name": "supervisor", "image": "convoy:latest"}]},
    }
    world.clients["north"].create(NAMESPACES.path(), {"metadata": {"name": "arena-system"}})
    world.clients["north"].create(PODS.path("arena-system"), pod)
    world.members["west"].faults.away = True

    def listed() -> list[list[str]]:
        head, *rows = [line.split() for line in convoy("get", "addons").out.splitlines()]
        assert head == ["NAME", "CLUSTER", "STATE", "READY", "RENEWED", "MESSAGE"]
        return [row[:4] for row in rows]

    name = "elastic-job-supervisor"
    shown = [["north", "Running", "1/1"], ["south", "NotInstalled", "0/0"], ["west", "Unknown", "0/0"]]
    world.until(lambda: listed() == [[name, *row] for row in shown], "it runs")
    assert convoy("get", "addons", "south", "-o", "name").out == "addon/elastic-job-supervisor\n"
    refused = convoy("cluster", "supervise", "south", "--image", "registry.example.com/convoy:1")
    assert refused.code == 4 and "does not serve" in refused.err
    spaced = convoy("cluster", "supervise", "south", "--image", "con voy")
    assert spaced.code != 0 and "image" in spaced.err
    world.members["south"].rotate("another")
    denied = convoy("cluster", "supervise", "south", "--image", "registry.example.com/convoy:1")
    assert denied.code != 0 and "does not allow to create Namespace arena-system" in denied.err
    assert "the fleet's account there needs" in convoy("get", "addons", "south").out


def test_1_1_13_pods_are_a_launcher_and_workers_and_the_launcher_starts_only_after_all_workers_are_ready(world):
    world.member("north", 8)
    world.apply(POLICY, training_job())
    world.expect("fine-tuning", "Running")
    started = {pod["metadata"]["name"]: pod["metadata"]["creationTimestamp"] for pod in world.pods("north")}
    assert set(started) == {"fine-tuning-launcher", *(f"fine-tuning-worker-{i}" for i in range(8))}
    ready = [
        condition["lastTransitionTime"]
        for pod in world.pods("north")
        for condition in pod["status"]["conditions"]
        if condition["type"] == "Ready" and pod["metadata"]["name"] != "fine-tuning-launcher"
    ]
    assert started["fine-tuning-launcher"] >= max(ready)


@pytest.mark.parametrize(("policy", "failures"), [("OnFailure", 4), ("Never", 1)])
def test_1_1_16_with_a_limit_of_3_the_4th_failure_of_the_whole_job_is_final_and_with_never_the_first(
    world, policy, failures
):
    world.member("north", 8)
    text = training_job(workers=1, duration="1s", exit_code="1", restartPolicy=policy, backoffLimit=3)
    world.apply(POLICY, text)
    job = world.expect("fine-tuning", "Failed")
    assert job.status.get("restartCount", 0) + 1 == failures
