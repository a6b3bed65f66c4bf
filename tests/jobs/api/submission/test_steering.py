"""Priority, queue, size, preemption and a second run, for many jobs at once: previewed exactly, done, refused one by one."""

import pytest
from django.utils import timezone

from fleet.models import Event
from jobs.models import Attempt, Job
from jobs.services.submission import bulk
from tests.jobs.api.builders import submitted
from tests.support import books

pytestmark = pytest.mark.django_db


def act(client, action: str, *jobs: Job, **more):
    body = {"action": action, "ids": [str(job.uid) for job in jobs], **more}
    return client.post("/api/v1/jobs/bulk/", body, format="json")


def only(answer):
    assert answer.status_code == 200, answer.json()
    [result] = answer.json()["results"]
    return result


def ended(name: str, namespace: str = "vision") -> Job:
    job = submitted(name, namespace)
    Job.objects.filter(pk=job.pk).update(state=Job.State.SUCCEEDED)
    job.refresh_from_db()
    return job


def test_it_changes_priorities_and_keeps_the_author(as_editor):
    job = submitted("a")
    Job.objects.filter(pk=job.pk).update(submitted_by="grace")
    would = only(act(as_editor, "priority", job, priority=7, preview=True))
    assert (would["done"], would["before"], would["after"]) == (True, "0", "7")
    assert Job.objects.get().priority == 0
    assert only(act(as_editor, "priority", job, priority=7))["done"]
    job.refresh_from_db()
    assert (job.priority, job.submitted_by, job.generation) == (7, "grace", 2)
    assert job.manifest["metadata"]["annotations"]["convoy.dev/priority"] == "7"
    assert Event.objects.filter(reason="Reprioritized").exists()
    again = only(act(as_editor, "priority", job, priority=7))
    assert not again["done"] and again["message"] == "its priority is 7 already"


def test_it_refuses_a_priority_above_the_ceiling_in_the_preview_too(as_editor, settings):
    job = submitted("a")
    above = settings.CONVOY_CYCLE.max_priority + 1
    for preview in (True, False):
        result = only(act(as_editor, "priority", job, priority=above, preview=preview))
        assert not result["done"] and "may have at most" in result["message"]
    assert Job.objects.get().priority == 0


def test_it_leaves_the_priority_of_what_has_ended(as_editor):
    assert only(act(as_editor, "priority", ended("a"), priority=1))["message"] == "the job has ended (Succeeded)"


def test_it_runs_an_ended_job_once_more_under_the_next_name(as_editor):
    first = ended("gpt-2")
    assert only(act(as_editor, "resubmit", first, preview=True))["after"] == "gpt-2-r2"
    assert Job.objects.count() == 1
    assert only(act(as_editor, "resubmit", first))["after"] == "gpt-2-r2"
    assert only(act(as_editor, "resubmit", first))["after"] == "gpt-2-r3"
    second = Job.objects.get(name="gpt-2-r2")
    assert second.state == Job.State.QUEUED and second.manifest["spec"] == first.manifest["spec"]
    refused = only(act(as_editor, "resubmit", second))
    assert not refused["done"] and "has not ended" in refused["message"]


def test_a_name_of_full_length_does_not_grow(as_editor):
    name = "a" * 54
    assert len(only(act(as_editor, "resubmit", ended(name)))["after"]) <= len(name)


def test_it_preempts_what_is_on_a_cluster_and_queues_it_again(as_editor):
    cluster = books.a_cluster("north")
    job = submitted("a")
    waiting = only(act(as_editor, "preempt", job, preview=True))
    assert waiting["message"] == "only a job that is on a cluster is preempted, and it is Queued"
    now = timezone.now()
    Job.objects.filter(pk=job.pk).update(state=Job.State.RUNNING, attempt=1, cluster=cluster, started_at=now)
    Attempt.objects.create(job=job, number=1, cluster_name="north", placed_at=now, started_at=now)
    assert only(act(as_editor, "preempt", job, preview=True))["before"] == "north"
    assert Job.objects.get().state == Job.State.RUNNING
    assert only(act(as_editor, "preempt", job))["done"]
    job.refresh_from_db()
    assert job.state == Job.State.RECLAIMING and job.reason["message"].startswith("preempted by")
    assert Attempt.objects.get().outcome == "Reclaimed"


def test_it_says_why_a_job_cannot_be_scaled_or_moved(as_editor):
    job = submitted("a")
    assert "is not resized while it runs" in only(act(as_editor, "scale", job, replicas=3))["message"]
    assert "root/nowhere is no queue" in only(act(as_editor, "move", job, queue="root/nowhere"))["message"]


@pytest.mark.parametrize(("action", "field"), [("priority", "priority"), ("move", "queue"), ("scale", "replicas")])
def test_it_asks_for_the_value_that_an_action_needs(as_editor, action, field):
    answer = act(as_editor, action, submitted("a"))
    assert answer.status_code == 422 and field in str(answer.json())


@pytest.mark.parametrize("action", list(bulk.BulkAction))
def test_no_action_touches_what_the_caller_may_not_see(as_editor, action):
    theirs = ended("whisper", "speech")
    before = Job.objects.values().get()
    result = only(act(as_editor, action, theirs, priority=1, queue="root/a", replicas=1))
    assert result["message"] == "there is no such job any more" and Job.objects.values().get() == before


@pytest.mark.parametrize("action", list(bulk.BulkAction))
def test_no_action_is_for_viewers(as_viewer, action):
    job = submitted("whisper", "speech")
    assert act(as_viewer, action, job, priority=1, queue="root/a", replicas=1).status_code == 403
