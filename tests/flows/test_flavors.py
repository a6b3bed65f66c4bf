"""Two GPU models through the real parts: a team gets the model it was promised back, and no job on another leaves for it."""

import json

import pytest
import yaml
from django.utils import timezone

from fleet.models import Pod
from jobs.models import Job
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support.quotas import PLENTY
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
LABEL = "nvidia.com/gpu.product"
GPU, H100, A10 = "nvidia.com/gpu", "nvidia.com/gpu:h100", "nvidia.com/gpu:a10"
TABLE = {"h100": {LABEL: "NVIDIA-H100-80GB-HBM3"}, "a10": {LABEL: "NVIDIA-A10"}}
QUEUE = "quota.scheduling.alibabacloud.com/name"


def amounts(gpus: int, h100: int, a10: int) -> dict[str, int]:
    return {GPU: gpus, H100: h100, A10: a10}


def apply_tree(order: str = "h100,a10", **attributes: str) -> None:
    """Half of eight H100 and of eight A10 is promised to a, the other half of the A10 to b, which may borrow all."""
    total = {**PLENTY, **amounts(16, 8, 8)}
    a = quota("a", amounts(8, 4, 4), amounts(16, 8, 8), attributes={"flavor-order": order, **attributes})
    b = quota("b", amounts(4, 0, 4), amounts(16, 8, 8), attributes={"flavor-order": "h100,a10"})
    root = quota("root", total, total, a, b, attributes={"flavors": json.dumps(TABLE)})
    trees.apply(manifest(root), by="system", now=timezone.now())


def job(name: str, queue: str) -> str:
    """Four GPUs of a queue."""
    body = yaml.safe_load(pytorch_job(name, workers=3, duration="10h"))
    body["metadata"] |= {"labels": {QUEUE: queue}, "annotations": {"convoy.dev/checkpoint-grace": "30"}}
    return yaml.safe_dump(body)


def model_of(name: str) -> set[str]:
    """The models of the nodes its pods are on, as the member has bound them."""
    job = Job.objects.get(name=name)
    pods = Pod.objects.filter(job_uid=job.uid, attempt=job.attempt).exclude(node="")
    labels = {node.name: node.labels[LABEL] for node in job.cluster.nodes.all()}
    return {labels[node] for node in pods.values_list("node", flat=True)}


def charged(name: str) -> dict[str, int]:
    charge = Job.objects.get(name=name).charge or {}
    return {resource: amount for resource, amount in charge.items() if resource.startswith(GPU)}


@pytest.fixture
def borrowed(unswept):
    """One cluster has nodes of both models; b runs two jobs on H100, which are all, and two on A10."""
    models = [TABLE["h100"][LABEL]] * 2 + [TABLE["a10"][LABEL]] * 2
    unswept.member("north", 4, 4, 4, 4, models=models)
    apply_tree()
    unswept.apply(POLICY)
    for name in ("first", "second", "third", "fourth"):
        unswept.apply(job(name, "b"))
        unswept.expect(name, "Running")
    return unswept


def test_a_team_gets_its_model_back_from_a_job_on_that_model(borrowed):
    assert [charged(name) for name in ("first", "second", "third", "fourth")] == (
        [{GPU: 4, H100: 4}] * 2 + [{GPU: 4, A10: 4}] * 2
    )
    assert model_of("second") == {"NVIDIA-H100-80GB-HBM3"} and model_of("third") == {"NVIDIA-A10"}
    borrowed.apply(job("mine", "a"))
    borrowed.expect("mine", "Running")
    assert charged("mine") == {GPU: 4, H100: 4} and model_of("mine") == {"NVIDIA-H100-80GB-HBM3"}
    left = Job.objects.get(state="Queued")
    assert left.name in ("first", "second")
    told = dict(borrowed.events(left.name))["Reclaimed"]
    assert "default/mine of root/a was promised its place: root/b is 8 nvidia.com/gpu:h100 above its min" in told
    message = left.reason["message"]
    assert (
        message.startswith("h100: asks for 4 ") and "; a10: asks for 4 nvidia.com/gpu:a10: root/b has max 8" in message
    )


def test_a_job_for_one_model_never_stops_one_on_another(borrowed):
    apply_tree(order="a10")
    borrowed.apply(job("one", "a"), job("two", "a"))
    borrowed.until(
        lambda: Job.objects.filter(name__in=["one", "two"], state="Running").count() == 1, "one of them runs"
    )
    assert {name: model_of(name) for name in ("first", "second")} == {
        "first": {"NVIDIA-H100-80GB-HBM3"},
        "second": {"NVIDIA-H100-80GB-HBM3"},
    }
    waiting = Job.objects.get(name__in=["one", "two"], state="Queued")
    assert waiting.reason["message"].startswith("a10: asks for 4 ")
