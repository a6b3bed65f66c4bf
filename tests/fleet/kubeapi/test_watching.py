"""Watches as the official Python client holds them: nothing missed, nothing of others, a clear word when it is too late."""

import threading
from datetime import timedelta
from itertools import islice

import pytest
from django.utils import timezone
from kubernetes import client, config, dynamic
from kubernetes.watch import Watch

from fleet.changes import events, journal
from fleet.kube.resources import EVENTS, PYTORCH_JOBS
from fleet.member.errors import MemberError
from jobs.models import Job
from jobs.services.submission import manifests, submit
from jobs.services.submission.changes import actions
from tests.fleet.kubeapi.builders import until
from tests.support.between import elsewhere
from tests.support.kubectl import client_of, served
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
KIND = ("kubeflow.org", "v1", "pytorchjobs")


def apply(text: str) -> None:
    submit.apply(manifests.parse(text.encode()), by="test", now=timezone.now())


def delete(name: str) -> None:
    actions.delete(Job.objects.get(name=name), by="test", now=timezone.now())


@pytest.fixture
def api(transactional_db, admin, viewer, tmp_path):
    """The clients of ada and of sam, who reads speech only."""
    with served(tmp_path) as kubectl:
        made = {name: config.new_client_from_config(str(kubectl.as_user(name).file)) for name in ("ada", "sam")}
        yield made
        for each in made.values():
            each.rest_client.pool_manager.clear()


Told = list[tuple[str, str]]


def told(api, version: int, count: int, seen: Told | None = None, **asked) -> Told:
    """The first so many events of a watch."""
    watch, seen = Watch(), [] if seen is None else seen
    asked = {"resource_version": str(version), "timeout_seconds": 120, **asked}
    for each in watch.stream(client.CustomObjectsApi(api).list_cluster_custom_object, *KIND, **asked):
        seen.append((each["type"], each["object"]["metadata"]["name"]))
        if len(seen) == count:
            watch.stop()
    return seen


def test_it_tells_everything_since_a_version_and_nothing_before(api):
    apply(pytorch_job("old"))
    version = journal.head()
    apply(pytorch_job("llama"))
    delete("old")
    assert told(api["ada"], version, 2) == [("ADDED", "llama"), ("DELETED", "old")]


def test_it_begins_with_what_there_is_when_no_version_is_given(api):
    apply(pytorch_job("llama"))
    assert told(api["ada"], 0, 1) == [("ADDED", "llama")]


def test_it_tells_of_objects_that_come_into_a_selector_and_leave_it(api):
    apply(pytorch_job("llama"))
    seen: Told = []
    asked = (api["ada"], 0, 3, seen)
    watching = threading.Thread(target=told, args=asked, kwargs={"label_selector": "team in (vision)"})
    watching.start()
    jobs = dynamic.DynamicClient(api["ada"]).resources.get(api_version="kubeflow.org/v1", kind="PyTorchJob")
    for team, event in (("vision", "ADDED"), ("speech", "DELETED"), ("vision", "ADDED")):
        change = {"metadata": {"name": "llama", "labels": {"team": team}}}
        jobs.patch(change, namespace="default", content_type="application/merge-patch+json")
        until(lambda event=event: seen and seen[-1] == (event, "llama"))
    watching.join()
    assert len(seen) == 3


def test_it_keeps_to_the_namespaces_its_reader_may_see(api):
    apply(pytorch_job("old"))
    version = journal.head()
    for name, namespace in (("theirs", "vision"), ("ours", "speech"), ("again", "vision"), ("last", "speech")):
        apply(pytorch_job(name).replace("name: ", f"namespace: {namespace}\n  name: ", 1))
    assert told(api["sam"], version, 2) == [("ADDED", "ours"), ("ADDED", "last")]


def test_it_says_that_a_version_is_too_old(api):
    apply(pytorch_job("llama"))
    for gpus in (2, 3, 4):
        apply(pytorch_job("llama", gpus=gpus))
    journal.compact(1)
    with pytest.raises(client.ApiException) as refusal:
        told(api["ada"], 1, 1)
    assert refusal.value.status == 410


def test_it_misses_nothing_of_many_changes(api):
    apply(pytorch_job("old"))
    version, names = journal.head(), [f"job-{i}" for i in range(60)]
    writer = threading.Thread(target=elsewhere, args=(lambda: [apply(pytorch_job(name)) for name in names],))
    writer.start()
    seen = told(api["ada"], version, len(names))
    writer.join()
    assert [name for _, name in seen] == names


@pytest.fixture
def member(transactional_db, admin, tmp_path):
    """The door as a plain client."""
    with served(tmp_path) as kubectl:
        yield client_of(kubectl.as_user("ada").file)


def raw(member, version: str, count: int, **params: str) -> list[tuple[str, str, dict]]:
    """The first so many events of a watch, or everything that one of a second tells where none is expected."""
    timeout_s = 120 if count else 1
    told = member.watch(PYTORCH_JOBS.path(), resource_version=version, timeout_s=timeout_s, params=params)
    return [
        (each.type, each.object["metadata"].get("name", ""), each.object["metadata"])
        for each in islice(told, count or None)
    ]


def test_it_marks_the_end_of_what_there_was_when_asked_to_begin_with_it(member):
    apply(pytorch_job("llama"))
    asked = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    first, mark = raw(member, "1", 2, **asked)
    assert (first[:2], mark[0]) == (("ADDED", "llama"), "BOOKMARK")
    assert mark[2]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert mark[2]["resourceVersion"] == str(journal.head())


def test_it_begins_with_nothing_when_asked_not_to(member):
    apply(pytorch_job("llama"))
    assert raw(member, "", 0, sendInitialEvents="false") == []


def test_it_tells_what_left_a_selector_between_the_list_and_the_watch(member):
    labelled = pytorch_job("llama").replace("name: llama", "name: llama\n  labels: {team: vision}")
    for text in (labelled, labelled.replace("llama", "other")):
        apply(text)
    version = str(journal.head())
    delete("llama")
    apply(pytorch_job("other"))
    apply(labelled)
    told = raw(member, version, 3, labelSelector="team=vision")
    assert [each[:2] for each in told] == [("DELETED", "llama"), ("DELETED", "other"), ("ADDED", "llama")]
    named = raw(member, version, 2, fieldSelector="metadata.name=llama")
    assert [each[:2] for each in named] == [("DELETED", "llama"), ("ADDED", "llama")]


def test_it_refuses_a_version_that_is_not_there_yet(member):
    with pytest.raises(MemberError) as refusal:
        raw(member, str(journal.head() + 1000), 1)
    assert refusal.value.status == 504 and "Too large resource version" in refusal.value.message


def test_it_tells_of_events_as_they_are_said_said_again_and_forgotten(member):
    about, now = journal.Change("Cluster", "", "north", "u-1", journal.Action.MODIFIED), timezone.now()
    events.record(about, "Joined", "somebody joined it", now)
    version = str(journal.head())
    for _ in range(2):
        events.record(about, "Looked", "all is well", now)
    first = next(member.watch(EVENTS.path(), resource_version=version, timeout_s=120))
    assert (first.type, first.object["count"]) == ("ADDED", 2)
    name, since = first.object["metadata"]["name"], first.object["metadata"]["resourceVersion"]
    events.forget_old(now + timedelta(days=1), now)
    assert int(since) > int(version)
    told = member.watch(EVENTS.path("default"), resource_version=since, timeout_s=120)
    gone = [next(told) for _ in range(2)]
    assert [each.type for each in gone] == ["DELETED", "DELETED"] and gone[1].object["metadata"]["name"] == name
