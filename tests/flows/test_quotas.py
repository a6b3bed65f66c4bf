"""Jobs under a quota tree, through the real parts: who starts, who waits and why, and when a quota is free again."""

from datetime import timedelta
from itertools import pairwise

import pytest
from django.utils import timezone

from jobs.models import Job
from quotas.models import Queue
from quotas.services import queues
from tests.support.processor import Waiting
from tests.support.quotas import GPU, JOBS, apply_tree, gpus, leaf
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)

SUSPENDED = POLICY.replace("  propagateDeps: true", "  propagateDeps: true\n  suspension: {scheduling: true}")


def code(world, name):
    return (world.job(name).reason or {}).get("code")


@pytest.mark.parametrize("policy", [POLICY, SUSPENDED], ids=["bound", "suspended"])
def test_it_runs_one_job_at_a_time_of_a_queue_with_max_jobs_1(unswept, policy):
    unswept.member("north", 8)
    apply_tree(leaf("child-2", "default", max={JOBS: 1}))
    unswept.apply(policy, pytorch_job("first", duration="10h"), pytorch_job("second", duration="10h"))
    unswept.expect("first", "Running")
    unswept.until(lambda: code(unswept, "second") == "MaxJobsReached", "second is told why it waits")
    quota = unswept.job("second").reason["quota"]
    assert (quota["path"], quota["resource"], quota["used"], quota["max"]) == ("root/child-2", JOBS, 1, 1)
    unswept.finish("first")
    unswept.expect("second", "Running")
    assert Job.objects.filter(charge__isnull=False).count() == 1


def test_it_lets_the_next_of_a_queue_start_within_250_ms_of_each_end(unswept):
    """Of each but the slowest one in twenty. Never two at a time. On a busy machine, of the time that it lets us have."""
    unswept.member("north", 8)
    apply_tree(leaf("child-2", "default", max={JOBS: 1}))
    unswept.apply(POLICY, *(pytorch_job(f"j{i}", workers=0, duration="2s") for i in range(21)))
    at_once: set[int] = set()
    waiting = Waiting()

    def over() -> bool:
        at_once.add(Job.objects.filter(charge__isnull=False).count())
        return Job.objects.filter(state="Succeeded").count() == 21

    unswept.until(over, "each had its turn")
    line = Job.objects.order_by("finished_at").prefetch_related("attempts")
    waits = sorted(after.attempts.get().placed_at - before.finished_at for before, after in pairwise(line))
    assert at_once <= {0, 1} and waits[-2] < timedelta(seconds=0.25) * waiting.slowdown(), waits


def test_it_frees_the_quota_of_a_suspended_job_once_its_pods_are_gone(unswept):
    unswept.member("north", 8)
    apply_tree(leaf("team", "default", **gpus(3, 3)))
    unswept.apply(POLICY, pytorch_job("first", duration="10h"), pytorch_job("second", duration="10h"))
    unswept.expect("first", "Running")
    unswept.suspend("first")
    unswept.expect("second", "Running")
    assert unswept.job("first").charge is None and unswept.job("second").charge[GPU] == 3


def test_it_frees_the_quota_of_a_deleted_job(unswept):
    unswept.member("north", 8)
    apply_tree(leaf("team", "default", **gpus(3, 3)))
    unswept.apply(POLICY, pytorch_job("first", duration="10h"), pytorch_job("second", duration="10h"))
    unswept.expect("first", "Running")
    unswept.delete("first")
    unswept.expect("second", "Running")


def test_it_charges_nothing_for_a_job_that_no_cluster_holds_and_shows_both_answers(unswept):
    unswept.member("north", 2)
    apply_tree(leaf("team", "default", **gpus(8, 8)))
    unswept.apply(POLICY, pytorch_job("llama"))
    unswept.until(lambda: code(unswept, "llama") == "NoClusterFits", "the clusters say no")
    job = unswept.job("llama")
    assert job.charge is None and job.reason["quota"]["code"] == "Fits"
    assert job.reason["clusters"][0]["short"] == {GPU: 1}


def test_it_tells_one_whom_the_quota_refuses_what_the_clusters_say(unswept):
    unswept.member("north", 2)
    apply_tree(leaf("team", "default", **gpus(1, 1)))
    unswept.apply(POLICY, pytorch_job("llama"))
    unswept.until(lambda: code(unswept, "llama") == "NeverFits", "the quota says no")
    reason = unswept.job("llama").reason
    assert reason["quota"]["asked"] == 3 and reason["clusters"][0]["code"] == "NotEnoughFree"


def test_it_admits_nothing_while_a_queue_above_is_held_and_goes_on_when_it_is_opened(unswept):
    unswept.member("north", 8)
    apply_tree(leaf("team", "", leaf("a", "default")))
    team = Queue.objects.get(path="root/team")
    queues.set_state(team, Queue.State.HELD, by="system", now=timezone.now())
    unswept.apply(POLICY, pytorch_job("llama"))
    unswept.until(lambda: code(unswept, "llama") == "QueueHeld", "it is told which queue is held")
    assert unswept.job("llama").reason["quota"]["queue"] == team.name
    queues.set_state(team, Queue.State.OPEN, by="system", now=timezone.now())
    unswept.expect("llama", "Running")


def test_it_waits_with_a_suspended_policy_in_no_leaf_and_starts_when_a_tree_takes_it_in(unswept):
    unswept.member("north", 8)
    apply_tree(leaf("team", "elsewhere"))
    unswept.apply(SUSPENDED, pytorch_job("llama"))
    unswept.until(lambda: code(unswept, "llama") == "NoQuotaForNamespace", "no leaf is its own")
    apply_tree(leaf("team", "default"))
    unswept.expect("llama", "Running")


def test_it_charges_a_moving_job_once_and_keeps_its_place_for_it(world):
    for name in ("north", "south"):
        world.member(name, 4, time_scale=1.0)
    apply_tree(leaf("team", "default", max={JOBS: 1}))
    failover = "{application: {decisionConditions: {tolerationSeconds: 1}, purgeMode: Immediately}}"
    moving = POLICY.replace("  propagateDeps: true", f"  propagateDeps: true\n  failover: {failover}")
    world.apply(moving, pytorch_job("llama", duration="10h"), pytorch_job("other", duration="10h"))
    home = str(world.expect("llama", "Running").cluster)
    world.members[home].faults.away = True
    world.until(lambda: world.job("llama").attempt == 2, "it moves")
    world.expect("llama", "Running")
    assert code(world, "other") == "MaxJobsReached" and world.job("other").attempt == 0


def test_it_queues_a_job_again_that_leaves_its_cluster_under_a_suspended_policy(world):
    for name in ("north", "south"):
        world.member(name, 4, time_scale=1.0)
    apply_tree(leaf("team", "default", max={JOBS: 1}))
    world.apply(SUSPENDED, pytorch_job("llama", duration="10h"))
    home = str(world.expect("llama", "Running").cluster)
    queued_at = world.job("llama").queued_at
    world.clients[home].delete("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/llama")
    world.until(lambda: world.job("llama").attempt == 2, "it is placed again")
    job = world.expect("llama", "Running")
    assert job.queued_at == queued_at and job.charge is not None
