"""A queue takes back what it lent, through the real parts: who leaves, how, where it stands then; and who is left alone."""

import pytest
import yaml
from django.utils import timezone

from jobs.models import Job
from quotas.models import Queue
from quotas.services import queues
from tests.support.quotas import GPU, PLENTY, apply_tree, gpus, leaf
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
LABEL = "quota.scheduling.alibabacloud.com/name"


def job(name: str, queue: str, *, grace: str = "30", **fields) -> str:
    """Four GPUs of a queue."""
    body = yaml.safe_load(pytorch_job(name, **{"workers": 3, "duration": "10h", **fields}))
    body["metadata"] |= {"labels": {LABEL: queue}, "annotations": {"convoy.dev/checkpoint-grace": grace}}
    return yaml.safe_dump(body)


def two_queues(world, low: int = 4) -> None:
    apply_tree(leaf("a", **gpus(low, 8)), leaf("b", **gpus(8 - low, 8)), total={**PLENTY, GPU: 8})


def borrowed(world) -> None:
    """Everything is in use by b, half of it on loan."""
    world.member("north", 8)
    two_queues(world)
    world.apply(POLICY, job("old", "b"))
    world.expect("old", "Running")
    world.apply(job("young", "b"))
    world.expect("young", "Running")


def test_it_takes_back_what_was_lent_from_the_one_that_started_last(unswept):
    borrowed(unswept)
    queued_at = unswept.job("young").queued_at
    unswept.apply(job("mine", "a"))
    unswept.expect("mine", "Running")
    young = unswept.expect("young", "Queued")
    assert unswept.job("old").state == "Running" and unswept.job("old").attempt == 1
    assert young.charge is None and young.queued_at == queued_at and young.reclaim["by"] == "default/mine"
    assert unswept.copies() == {"north": ["mine", "old"]}


def test_it_tells_both_what_happens(unswept):
    borrowed(unswept)
    unswept.apply(job("mine", "a"))
    unswept.expect("mine", "Running")
    told = dict(unswept.events("young"))
    assert (
        "default/mine of root/a was promised its place: root/b is 4 nvidia.com/gpu above its min" in told["Reclaimed"]
    )
    assert unswept.job("young").attempts.get().outcome == "Reclaimed"


def test_it_preempts_as_much_as_was_promised_when_more_jobs_that_are_alike_come_in_one_apply(unswept):
    """Five jobs of 8 GPUs, of which the min of 16 holds two; borrowers have all 24."""
    unswept.member("north", 8, 8, 8)
    apply_tree(leaf("a", **gpus(16, 24)), leaf("b", **gpus(0, 24)), total={**PLENTY, GPU: 24})
    unswept.apply(POLICY, *(job(f"lent-{i}", "b", workers=0, gpus=8) for i in range(3)))
    for i in range(3):
        unswept.expect(f"lent-{i}", "Running")
    unswept.apply(*(job(f"mine-{i}", "a", workers=0, gpus=8) for i in range(5)))
    runs = Job.objects.filter(name__startswith="mine", state="Running")
    unswept.until(lambda: runs.count() == 2, "what was promised runs")
    assert Job.objects.filter(name__startswith="lent", state="Running").count() == 1


def test_it_brings_a_victim_back_when_there_is_room_again(unswept):
    borrowed(unswept)
    unswept.apply(job("mine", "a", duration="20s"))
    unswept.expect("mine", "Succeeded")
    assert unswept.expect("young", "Running").attempt == 2


def test_it_takes_back_nothing_for_a_gang_that_no_cluster_could_hold(unswept):
    unswept.member("north", 4)
    unswept.member("south", 4)
    two_queues(unswept, low=8)
    unswept.apply(POLICY, job("old", "b"), job("young", "b"))
    for name in ("old", "young"):
        unswept.expect(name, "Running")
    huge = yaml.safe_load(job("huge", "a"))
    huge["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 7
    unswept.apply(yaml.safe_dump(huge))
    unswept.until(lambda: (unswept.job("huge").reason or {}).get("code") == "QuotaExceeded", "it waits")
    assert unswept.job("huge").reason["quota"]["entitled"]
    assert {each.state for each in Job.objects.exclude(name="huge")} == {"Running"}


def test_it_takes_back_what_runs_in_a_stopped_queue_and_lets_it_run_again(unswept):
    unswept.member("north", 8)
    two_queues(unswept)
    unswept.apply(POLICY, job("mine", "a"))
    unswept.expect("mine", "Running")
    queue = Queue.objects.get(path="root/a")
    queues.set_state(queue, Queue.State.STOPPED, by="system", now=timezone.now())
    unswept.until(lambda: (unswept.job("mine").reason or {}).get("code") == "QueueHeld", "it waits in a stopped queue")
    assert unswept.job("mine").charge is None and unswept.copies() == {"north": []}
    queues.set_state(queue, Queue.State.OPEN, by="system", now=timezone.now())
    assert unswept.expect("mine", "Running").attempt == 2
