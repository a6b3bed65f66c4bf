"""What a stranger writes in a member decides nothing about a job: only what Convoy made there is believed."""

import copy

import pytest
from django.utils import timezone

from fleet.core.members import marks
from fleet.kube.resources import PYTORCH_JOBS
from fleet.models import Event
from jobs.models import Job, Work
from jobs.services.follow.status import JobEventHandler
from jobs.services.lifecycle.copies import provenance
from jobs.services.submission.changes import actions
from tests.support import books
from tests.support.passive import passive_member
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
SUCCEEDED = {"conditions": [{"type": "Succeeded", "status": "True"}]}


@pytest.fixture
def member(tmp_path):
    provenance._reported.clear()
    with passive_member(tmp_path) as made:
        books.apply(pytorch_job("llama"))
        books.cycle()
        made.work(PYTORCH_JOBS)
        yield made


def real(member) -> dict:
    return member.client.get(PYTORCH_JOBS.path("default", "llama"))


def fake(member, **metadata) -> dict:
    """The job's copy with another uid, as somebody may create it elsewhere, and say it has succeeded."""
    found = copy.deepcopy(real(member))
    found["metadata"] = {**found["metadata"], "uid": "11111111-1111-4111-8111-111111111111", **metadata}
    return {**found, "status": SUCCEEDED}


def observe(member, *objects: dict) -> None:
    JobEventHandler().on_update(member.cluster.pk, PYTORCH_JOBS, objects, timezone.now())


def said() -> list[str]:
    return list(Event.objects.filter(reason="ObjectNotBelieved").values_list("message", flat=True))


@pytest.mark.parametrize(
    "metadata", [{"namespace": "team-a"}, {"name": "spoof"}, {"namespace": "team-a", "name": "spoof"}, {"labels": None}]
)
def test_a_status_of_a_stranger_s_object_is_not_believed(member, metadata):
    if "labels" in metadata:
        metadata = {"labels": {**real(member)["metadata"]["labels"], marks.MARK: "0" * 40}}
    before = books.job("llama").state
    observe(member, fake(member, **metadata))
    member.work(PYTORCH_JOBS)
    assert books.job("llama").state == before and Work.objects.count() == 1
    assert real(member) and len(said()) == 1


def test_the_vanishing_of_a_stranger_s_object_moves_nothing(member):
    JobEventHandler().on_delete(member.cluster.pk, PYTORCH_JOBS, [fake(member, namespace="team-a")], timezone.now())
    assert books.job("llama").state == "Dispatched"


def test_it_believes_the_object_it_made(member):
    found = {**real(member), "status": SUCCEEDED}
    observe(member, found)
    assert books.job("llama").state == "Succeeded" and said() == []


def test_it_believes_the_object_it_made_before_its_uid_was_recorded(member):
    Work.objects.update(object_uid="")
    observe(member, fake(member))
    assert books.job("llama").state == "Succeeded"


def test_it_believes_by_the_place_what_was_sent_before_there_were_marks(member):
    Work.objects.update(object_uid="", marked=False)
    labels = {key: value for key, value in real(member)["metadata"]["labels"].items() if key != marks.MARK}
    observe(member, fake(member, labels=labels, namespace="team-a"))
    assert books.job("llama").state == "Dispatched"
    observe(member, fake(member, labels=labels))
    assert books.job("llama").state == "Succeeded"


def test_a_stranger_s_object_for_an_attempt_to_come_does_not_stop_the_scheduler(member):
    actions.suspend(books.job("llama"), by="test", now=timezone.now())
    labels = {**real(member)["metadata"]["labels"], marks.ATTEMPT: "2"}
    observe(member, fake(member, namespace="team-a", labels=labels))
    member.work(PYTORCH_JOBS)
    actions.resume(books.job("llama"), by="test", now=timezone.now())
    member.work(PYTORCH_JOBS)
    books.apply(pytorch_job("innocent"))
    assert books.cycle() == 2
    assert Work.objects.filter(attempt=2).count() == 1


def test_it_keeps_a_copy_of_a_job_that_a_restored_database_does_not_know(member):
    Job.objects.all().delete()
    Work.objects.all().delete()
    member.report(PYTORCH_JOBS)
    member.work(PYTORCH_JOBS)
    assert real(member)["metadata"].get("deletionTimestamp") is None
    assert "does not know" in said()[0]


def test_it_removes_what_a_late_sender_made_for_a_job_that_was_deleted(member):
    body = real(member)
    actions.delete(books.job("llama"), by="test", now=timezone.now())
    member.work(PYTORCH_JOBS)
    assert not Job.objects.exists()
    kept = {key: body["metadata"][key] for key in ("name", "namespace", "labels")}
    member.client.create(PYTORCH_JOBS.path("default"), {**body, "metadata": kept})
    member.report(PYTORCH_JOBS)
    member.work(PYTORCH_JOBS)
    assert member.items(PYTORCH_JOBS) == []


def test_its_reports_are_bounded(member):
    observe(member, *(fake(member, name=f"spoof-{i}") for i in range(provenance._MOST_REPORTED + 50)))
    assert len(said()) == provenance._MOST_REPORTED


def test_a_mark_outlives_the_rotation_of_keys(member, settings):
    from cryptography.fernet import Fernet

    Work.objects.update(object_uid="")
    settings.CONVOY_ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *settings.CONVOY_ENCRYPTION_KEYS]
    observe(member, fake(member))
    assert books.job("llama").state == "Succeeded"
