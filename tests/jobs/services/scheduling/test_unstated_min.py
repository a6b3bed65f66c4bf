"""A queue whose min states GPUs alone, beside one that states cpu and pods as well: the promise of its GPUs is kept."""

import pytest
import yaml

from jobs.models import Job
from tests.support import books
from tests.support.quotas import GPU, PLENTY, apply_tree, gpus, leaf
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
LABEL = "quota.scheduling.alibabacloud.com/name"


def job(name: str, queue: str, gpus: int = 4) -> str:
    body = yaml.safe_load(pytorch_job(name, workers=0, gpus=gpus))
    body["metadata"]["labels"] = {LABEL: queue}
    return yaml.safe_dump(body)


@pytest.mark.parametrize("stated", [{"pods": 2}, {"pods": 2, "cpu": 2, "memory": "2Gi"}])
def test_it_takes_its_gpus_back_although_another_queue_states_more_than_gpus(stated):
    books.a_cluster(gpus=8)
    other = {**gpus(4, 8), "min": {GPU: 4, **stated}, "max": {**PLENTY, GPU: 8}}
    apply_tree(leaf("a", **gpus(4, 8)), leaf("b", **other), total={**PLENTY, GPU: 8})
    books.apply(job("old", "b"), job("young", "b"))
    books.cycle()
    books.apply(job("mine", "a"))
    books.cycle()
    assert Job.objects.filter(state=Job.State.RECLAIMING).count() == 1
    assert books.job("mine").reason["code"] == "WaitingForReclaim"


def test_it_takes_back_the_pods_that_it_needs():
    books.a_cluster(gpus=8)
    total = {**PLENTY, GPU: 8, "pods": 2}
    apply_tree(leaf("a", **gpus(4, 8)), leaf("b", **gpus(0, 8)), total=total)
    books.apply(job("one", "b", 1), job("two", "b", 1))
    books.cycle()
    books.apply(job("mine", "a"))
    books.cycle()
    assert Job.objects.filter(state=Job.State.RECLAIMING).count() == 1
    books.apply(job("borrows", "b", 1))
    books.cycle()
    assert "2 pods" in books.job("borrows").reason["message"]
