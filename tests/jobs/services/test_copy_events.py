"""Events that members have of a job's copy are events of the job at the fleet."""

from uuid import uuid4

import pytest
from django.utils import timezone

from fleet.kube.resources import EVENTS
from fleet.services.members import member_events
from fleet.services.members.member_events import Question
from jobs.models import Work
from tests.jobs.api.builders import submitted
from tests.support.members import api, join, members

__all__ = ["members"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def asked_each_time():
    member_events._recent.clear()
    yield
    member_events._recent.clear()


@pytest.fixture
def north(transactional_db, members):
    server = members("north")
    api(server).create("/api/v1/namespaces", {"metadata": {"name": "vision"}})
    server.row = join(server)
    return server


def a_copy(server, job, attempt=1):
    now, uid = timezone.now(), str(uuid4())
    Work.objects.create(
        job_uid=job.uid, attempt=attempt, cluster=server.row, api_version=job.api_version, kind=job.kind,
        namespace=job.namespace, name=job.name, due_at=now, created_at=now, object_uid=uid,
    )  # fmt: skip
    return uid


def say(server, uid, reason, namespace="vision"):
    about = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "namespace": namespace, "name": "llama", "uid": uid}
    event = {"metadata": {"name": f"llama.{reason.lower()}", "namespace": namespace}, "involvedObject": about}
    event |= {"type": "Warning", "reason": reason, "message": "why", "source": {"component": "pytorchjob-controller"}}
    api(server).create(EVENTS.path(namespace), event)


def told(question):
    return [(event["involvedObject"]["name"], event["reason"]) for event in member_events.of(None, question).events]


def test_they_are_shown_under_the_job_and_its_uid_at_the_fleet(north):
    job = submitted("llama")
    say(north, a_copy(north, job), "FailedCreatePod")
    [event] = member_events.of(None, Question(frozenset({"vision"}), "PyTorchJob", "llama")).events
    assert event["involvedObject"] == {
        "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "namespace": "vision", "name": "llama", "uid": str(job.uid),
    }  # fmt: skip
    assert (
        event["metadata"]["name"] == "llama.failedcreatepod.north"
        and event["source"]["component"] == "pytorchjob-controller"
    )


def test_of_other_objects_and_to_those_who_read_other_namespaces_nothing_is_shown(north):
    job = submitted("llama")
    say(north, a_copy(north, job), "Created")
    say(north, str(uuid4()), "Foreign")
    assert told(Question(None)) == [("llama", "Created")]
    assert told(Question(frozenset({"vision", "speech"}))) == [("llama", "Created")]
    assert (
        told(Question(frozenset({"speech"})))
        == told(Question(None, "RayJob"))
        == told(Question(None, "PyTorchJob", "x"))
        == []
    )


def test_an_event_in_another_namespace_than_its_object_is_not_believed(north):
    job = submitted("llama")
    say(north, a_copy(north, job), "Elsewhere", namespace="team")
    assert told(Question(None)) == []
