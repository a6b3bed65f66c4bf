"""The logs of pods that Convoy stops itself are kept: of jobs that are suspended, moved or deleted while they run."""

import pytest

from fleet.core.members.log_text import Selection
from fleet.models import Cluster, EndedPod
from fleet.services.logs import archive
from jobs.models import Work
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
PODS = ["llama-master-0", "llama-worker-0", "llama-worker-1"]


def running(world, **options):
    world.member("north", 4)
    world.apply(POLICY, pytorch_job("llama", duration="10h", **options))
    world.expect("llama", "Running")


def kept():
    return {pod.name: archive.text_of(pod, Selection()).content for pod in EndedPod.objects.filter(state="Kept")}


def all_kept():
    logs = kept()
    return sorted(logs) == PODS and all(logs.values())


def test_it_keeps_the_logs_of_a_job_that_is_suspended(world):
    running(world)
    world.suspend("llama")
    world.expect("llama", "Suspended")
    world.until(lambda: world.pods("north") == [] and all_kept(), "the logs are kept")


def test_it_keeps_the_logs_of_a_job_that_is_deleted(world):
    running(world)
    world.delete("llama")
    world.until(lambda: not Work.objects.exists(), "the job is forgotten")
    world.until(all_kept, "the logs are kept")
    assert {archive.as_row(pod).phase for pod in EndedPod.objects.all()} <= {"Failed", "Succeeded"}


def test_a_member_that_does_not_answer_does_not_hold_up_a_deletion_for_its_logs(world):
    running(world)
    Cluster.objects.update(failing_since=world.job("llama").created_at)
    world.delete("llama")
    world.until(lambda: not Work.objects.exists(), "the job is forgotten")
