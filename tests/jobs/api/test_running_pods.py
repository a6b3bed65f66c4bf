"""How many of a job's pods run, beside how many it has: only pods of what is current count."""

import pytest
from django.utils import timezone

from fleet.models import Cluster, Pod
from jobs.core.division.shares import Share
from jobs.core.life.shares import ShareState
from jobs.models import Job
from tests.jobs.api.builders import submitted, url

pytestmark = pytest.mark.django_db


@pytest.fixture
def llama(north: Cluster) -> Job:
    """The second attempt of three pods: two run, and one of the first has not left yet."""
    job = submitted("llama")
    Job.objects.filter(pk=job.pk).update(cluster=north, state=Job.State.RUNNING, attempt=2)
    for index, (attempt, phase) in enumerate([(2, "Running"), (2, "Running"), (2, "Pending"), (1, "Running")]):
        made = {"uid": str(index), "attempt": attempt, "phase": phase, "created_at": timezone.now()}
        Pod.objects.create(cluster=north, namespace="vision", name=f"p-{index}", job_uid=job.uid, **made)
    return job


def running(client, job: Job) -> set[int]:
    """As it is listed, and as it is read alone."""
    listed = {each["name"]: each["pods_running"] for each in client.get("/api/v1/jobs/").json()["results"]}
    return {listed[job.name], client.get(url(job)).json()["pods_running"]}


def test_it_counts_the_pods_that_run_of_the_current_attempt(as_editor, llama):
    waiting = submitted("whisper")
    assert (running(as_editor, llama), running(as_editor, waiting)) == ({2}, {0})


def test_it_counts_those_of_all_shares_that_are_not_lost(as_editor, llama):
    shares = [Share(1, "south", 1, 0, ShareState.RUNNING), Share(2, "north", 2, 0, ShareState.RUNNING)]
    Job.objects.filter(pk=llama.pk).update(shares=[share.as_json() for share in shares])
    assert running(as_editor, llama) == {3}
    lost = [Share(1, "south", 0, 0, ShareState.LOST), shares[1]]
    Job.objects.filter(pk=llama.pk).update(shares=[share.as_json() for share in lost])
    assert running(as_editor, llama) == {2}


def test_none_run_of_a_job_that_has_ended(as_editor, llama):
    Job.objects.filter(pk=llama.pk).update(state=Job.State.SUCCEEDED)
    assert running(as_editor, llama) == {0}
