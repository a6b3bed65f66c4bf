"""A running job gets another size in a member with an operator and kubelets: its pods follow, what they used is free."""

import pytest
import yaml
from django.utils import timezone

from fleet.models import Hold, Pod
from jobs.models import Job, Work
from jobs.services.submission.changes import resizing
from tests.jobs.services.resizing import batch, elastic, not_over_committed, sizes_agree
from tests.support.quotas import GPU, apply_tree, gpus, leaf
from tests.support.world import POLICY

pytestmark = pytest.mark.django_db(transaction=True)


def resize(world, name: str, replicas: int) -> None:
    resizing.resize(world.job(name), {"worker": replicas}, by="alice", now=timezone.now())


def settled(world, name: str, pods: int) -> None:
    """The size is in force, its pods run in the member, and the fleet holds nothing for it beside them."""

    def is_settled() -> bool:
        running = [pod for pod in world.pods("north") if pod["metadata"]["name"].startswith(name)]
        live = [pod for pod in running if pod["status"].get("phase") == "Running"]
        known = Pod.objects.filter(job_uid=world.job(name).uid, phase="Running").count()
        work = Work.objects.get(name=name)
        held = Hold.objects.filter(job_uid=world.job(name).uid, released_at=None).exists()
        return len(live) == len(running) == known == pods and work.resize_done == work.resize_wanted and not held

    world.until(is_settled, f"{name} has {pods} pods")
    sizes_agree()
    not_over_committed(world.job(name).cluster)


def test_pods_follow_the_size_and_what_they_used_is_free_for_others(world):
    world.member("north", 4, 4)
    apply_tree(leaf("a", **gpus(8, 8)))
    world.apply(POLICY, elastic("llama", 6, queue="a"))
    world.expect("llama", "Running")
    world.apply(elastic("next", 4, queue="a"))
    world.expect("next", "Queued")
    resize(world, "llama", 3)
    settled(world, "llama", 3)
    world.expect("next", "Running")
    resize(world, "llama", 8)
    world.until(lambda: "reason" in (world.job("llama").resize or {}), "it says why it does not grow")
    assert world.job("llama").resize["reason"]["code"] == "QuotaExceeded"
    world.delete("next")
    settled(world, "llama", 8)
    job = world.job("llama")
    assert (job.state, job.attempt, job.charge[GPU], job.resize) == (Job.State.RUNNING, 1, 8, None)


def test_a_batch_job_runs_more_at_a_time_and_ends(world):
    world.member("north", 8)
    body = yaml.safe_load(batch("shards", 2, 6))
    body["spec"]["template"]["metadata"] = {"annotations": {"convoy.dev/duration": "10h"}}
    world.apply(POLICY, yaml.safe_dump(body))
    world.expect("shards", "Running")
    resize(world, "shards", 6)
    world.until(lambda: Pod.objects.filter(phase="Running").count() > 2, "more than two run at a time")

    def has_ended() -> bool:
        world.finish("shards")
        return world.job("shards").state == "Succeeded"

    world.until(has_ended, "all six have succeeded")
    assert world.job("shards").charge is None
