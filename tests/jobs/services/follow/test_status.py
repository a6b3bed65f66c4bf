"""What a member's lists say of our copies, and what they do not."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.changes import background_sender, events
from fleet.core.members import marks
from fleet.kube.resources import Resource
from jobs.models import Job, Work
from jobs.services.follow.status import JobEventHandler
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
PYTORCH_JOBS = Resource("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob")


@pytest.fixture
def copy():
    """A job whose copy a worker has just made."""
    books.a_cluster()
    books.apply(pytorch_job("llama"))
    books.cycle()
    books.sent()
    Job.objects.update(state=Job.State.DISPATCHED)
    return Work.objects.get()


CLOCK_STEPS = [timedelta(), timedelta(hours=1), timedelta(hours=-1)]
"""How far the clock of the worker that sent the copy is ahead of the watcher's."""


def expected(copy):
    return set(JobEventHandler().expected(copy.cluster_id, PYTORCH_JOBS))


def listed_without(copy, keys):
    """A list that was requested when these keys were expected arrives, and is empty."""
    JobEventHandler().on_resync(copy.cluster_id, PYTORCH_JOBS, keys, timezone.now())
    return Job.objects.get().state


@pytest.mark.parametrize("step", CLOCK_STEPS)
def test_it_does_not_miss_a_copy_that_was_recorded_after_the_list_was_requested(copy, step):
    Work.objects.update(state=Work.State.SENDING)
    when_requested = expected(copy)
    Work.objects.update(state=Work.State.APPLIED, applied_at=timezone.now() + step)
    assert listed_without(copy, when_requested) == Job.State.DISPATCHED


@pytest.mark.parametrize("step", CLOCK_STEPS)
def test_it_sees_that_a_copy_has_vanished_that_was_recorded_before(copy, step):
    Work.objects.update(applied_at=timezone.now() + step)
    assert listed_without(copy, expected(copy)) == Job.State.MOVING


def test_it_expects_no_copy_of_another_kind_or_in_another_cluster(copy):
    handler, jobs = JobEventHandler(), Resource("batch", "v1", "jobs", "Job")
    assert expected(copy) and not handler.expected(copy.cluster_id, jobs)
    assert not handler.expected(books.a_cluster("south").pk, PYTORCH_JOBS)


def test_it_asks_for_one_look_however_often_a_copy_reports_that_it_restarts(copy, monkeypatch):
    enqueued = []
    monkeypatch.setattr(events, "enqueue", lambda task, *args, **options: enqueued.append(task))
    books.tolerating("llama", seconds=30)
    for _ in range(5):
        books.report("llama", "Restarting")
    assert enqueued.count("jobs.check_health") == 1


@pytest.mark.django_db(transaction=True)
def test_it_leaves_what_is_due_after_the_brokers_patience_to_the_sweeps(monkeypatch, settings):
    sent = []
    monkeypatch.setattr(background_sender, "send", lambda send: sent.append(send.args))
    events.enqueue("jobs.check_health", countdown_s=events.LONGEST_COUNTDOWN_S)
    events.enqueue("jobs.check_health", countdown_s=events.LONGEST_COUNTDOWN_S + 1)
    assert [args[2] for args in sent] == [events.LONGEST_COUNTDOWN_S]
    assert settings.CELERY_BEAT_SCHEDULE["jobs"]["schedule"].seconds < events.LONGEST_COUNTDOWN_S < 600


@pytest.mark.parametrize(
    ("condition", "ended"), [("Created", False), ("Running", False), ("Succeeded", True), ("Failed", True)]
)
def test_it_knows_an_end_by_the_conditions_of_the_jobs_kind(condition, ended):
    status = {"conditions": [{"type": condition, "status": "True"}]}
    assert JobEventHandler().has_ended(PYTORCH_JOBS, {"status": status}) == ended
    assert not JobEventHandler().has_ended(Resource("example.com", "v1", "others", "Other"), {"status": status})


def test_a_report_of_a_job_that_runs_on_asks_the_database_little(copy, django_assert_max_num_queries):
    """Its pods come and go; it keeps its place, so that nothing is released and no policy is asked."""
    Job.objects.update(state=Job.State.RUNNING, charge={"pods": 1})
    key = (copy.job_uid, copy.attempt)
    with django_assert_max_num_queries(4):
        JobEventHandler().on_pods_changed(copy.cluster_id, {key}, timezone.now())


def reported(copy, condition):
    """What the handler says it has followed, of a report by the copy of a running job."""
    labels = {marks.JOB_UID: str(copy.job_uid), marks.ATTEMPT: str(copy.attempt)}
    metadata = {"name": copy.name, "namespace": copy.namespace, "uid": copy.object_uid, "labels": labels}
    status = {"conditions": [{"type": condition, "status": "True"}]}
    return JobEventHandler().on_update(
        copy.cluster_id, PYTORCH_JOBS, [{"metadata": metadata, "status": status}], timezone.now()
    )


def test_it_follows_the_pods_of_an_attempt_with_its_object(copy):
    Work.objects.update(object_uid="made-there")
    copy.refresh_from_db()
    assert reported(copy, "Running") == {(copy.job_uid, copy.attempt)}
    assert reported(copy, "Succeeded") == {(copy.job_uid, copy.attempt)}


def test_it_leaves_the_pods_of_a_job_that_gives_its_charge_back_to_their_own_report(copy):
    Work.objects.update(object_uid="made-there")
    Job.objects.update(state=Job.State.FAILED, charge={"pods": 1})
    copy.refresh_from_db()
    assert reported(copy, "Failed") == set()
