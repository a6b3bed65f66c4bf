"""A job's spec may change as long as no copy of it can run, and is refused otherwise with what to do instead."""

import pytest
import yaml
from django.utils import timezone

from fleet.errors import Conflict, InvalidInput
from jobs.models import Job, Work
from jobs.services.submission.changes import actions
from tests.support.books import a_cluster, apply, cycle, end, gone, job, sent
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def placed() -> None:
    a_cluster("north")
    apply(pytorch_job("llama", workers=1))
    cycle()
    sent()


def suspended(workers: int) -> str:
    body = yaml.safe_load(pytorch_job("llama", workers=workers))
    body["spec"]["runPolicy"] = {"suspend": True}
    return yaml.safe_dump(body)


def suspend(copy: Work.State) -> None:
    """A person has suspended the job, and its copy has come so far."""
    actions.suspend(job("llama"), by="ada", now=timezone.now())
    Work.objects.update(state=copy)
    Job.objects.update(charge=None)


def workers() -> int:
    return job("llama").roles[1]["replicas"]


@pytest.mark.usefixtures("placed")
def test_a_placed_job_names_the_cluster_and_the_way_to_change_it():
    with pytest.raises(InvalidInput, match="a copy on north that may run: suspend the job") as refused:
        apply(pytorch_job("llama", workers=3))
    assert [fault.field for fault in refused.value.faults] == ["spec.pytorchReplicaSpecs.Worker.replicas"]
    assert workers() == 1


@pytest.mark.usefixtures("placed")
@pytest.mark.parametrize("copy", [Work.State.SUSPENDED, Work.State.GONE, Work.State.KEPT])
def test_a_suspended_job_changes_altogether_and_starts_as_it_is_now(copy):
    suspend(copy)
    apply(suspended(workers=3))
    assert workers() == 3 and job("llama").state == "Suspended" and job("llama").total["nvidia.com/gpu"] == 4
    apply(pytorch_job("llama", workers=4))
    gone("llama")
    cycle()
    assert (job("llama").attempt, workers(), job("llama").state) == (2, 4, "Placed")


@pytest.mark.usefixtures("placed")
@pytest.mark.parametrize("copy", [Work.State.SUSPENDING, Work.State.WITHDRAWING])
def test_it_is_to_be_tried_again_while_the_last_copy_is_being_stopped(copy):
    suspend(copy)
    with pytest.raises(Conflict, match="last copy on north is still being stopped; apply the change again"):
        apply(suspended(workers=3))


@pytest.mark.usefixtures("placed")
def test_it_is_to_be_tried_again_while_the_leaf_is_still_charged():
    suspend(Work.State.SUSPENDED)
    Job.objects.update(charge={"nvidia.com/gpu": 2})
    with pytest.raises(Conflict, match="its last copy is still being stopped"):
        apply(suspended(workers=3))


@pytest.mark.usefixtures("placed")
def test_a_job_that_has_ended_never_changes():
    end("llama")
    with pytest.raises(InvalidInput, match=r"the job has ended \(Succeeded\): delete it and apply it anew"):
        apply(pytorch_job("llama", workers=3))


@pytest.mark.usefixtures("placed")
def test_a_queued_job_whose_copy_may_still_run_somewhere_does_not_change():
    Job.objects.update(state=Job.State.QUEUED, cluster=None)
    with pytest.raises(InvalidInput, match="a copy on north that may run"):
        apply(pytorch_job("llama", workers=3))
    gone("llama")
    apply(pytorch_job("llama", workers=3))
    assert workers() == 3
