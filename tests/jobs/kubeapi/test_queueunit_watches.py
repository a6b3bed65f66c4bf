"""Watches of places in queues: they come, change and go with their jobs, and jobs outside of any queue are not among them."""

import pytest
from django.utils import timezone
from kubernetes import client, config
from kubernetes.watch import Watch

from fleet.changes import journal
from jobs.events import announce_jobs
from jobs.models import Job, Work
from jobs.services.submission import manifests, submit
from jobs.services.submission.changes import actions
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support.kubectl import served
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
KIND = ("scheduling.x-k8s.io", "v1alpha1", "queueunits")


@pytest.fixture
def api(transactional_db, admin, tmp_path):
    trees.apply(
        manifest(quota("root", 99, 99, quota("v", 4, 9, namespaces=["default"]))), by="test", now=timezone.now()
    )
    with served(tmp_path) as kubectl:
        made = config.new_client_from_config(str(kubectl.as_user("ada").file))
        yield made
        made.rest_client.pool_manager.clear()


def submitted(*names, namespace="default"):
    documents = manifests.parse("\n---\n".join((POLICY, *map(pytorch_job, names))).encode())
    for each in documents:
        each["metadata"]["namespace"] = namespace
    submit.apply(documents, by="test", now=timezone.now())


def told(api, version, count, kind=KIND):
    watch, seen = Watch(), []
    asked = {"resource_version": str(version), "timeout_seconds": 5}
    for each in watch.stream(client.CustomObjectsApi(api).list_cluster_custom_object, *kind, **asked):
        seen.append((each["type"], each["object"]["metadata"]["name"]))
        if len(seen) == count:
            watch.stop()
    return seen


def test_it_tells_what_was_there_and_what_went(api):
    """Of what came before the watch began it is not known whether its reader knew it: told as changed, which adds it."""
    submitted("first", "second")
    assert told(api, 0, 2) == [("ADDED", "first-pytorchjob"), ("ADDED", "second-pytorchjob")]
    version = journal.head()
    actions.delete(Job.objects.get(name="first"), by="test", now=timezone.now())
    submitted("third")
    assert told(api, version, 2) == [("DELETED", "first-pytorchjob"), ("MODIFIED", "third-pytorchjob")]


def test_it_tells_nothing_of_jobs_in_no_queue(api):
    version = journal.head()
    submitted("free", namespace="speech")
    submitted("bound")
    assert told(api, version, 1) == [("MODIFIED", "bound-pytorchjob")]


def test_it_tells_that_a_unit_is_gone_that_left_its_queue_between_the_list_and_the_watch(api):
    submitted("bound")
    version = journal.head()
    Job.objects.update(leaf="")
    announce_jobs([Job.objects.get()], timezone.now())
    assert told(api, version, 1) == [("DELETED", "bound-pytorchjob")]


def test_it_tells_that_the_works_of_a_job_are_gone_that_was_deleted_between_the_list_and_the_watch(api, north):
    submitted("bound")
    job, now = Job.objects.get(), timezone.now()
    names = {"api_version": job.api_version, "kind": job.kind, "namespace": job.namespace, "name": job.name}
    Work.objects.create(job_uid=job.uid, attempt=1, cluster=north, due_at=now, created_at=now, **names)
    kind = ("work.karmada.io", "v1alpha1", "works")
    known = client.CustomObjectsApi(api).list_cluster_custom_object(*kind)
    version = int(known["metadata"]["resourceVersion"])
    Work.objects.all().delete()
    actions.delete(job, by="test", now=now)
    assert ("DELETED", known["items"][0]["metadata"]["name"]) in told(api, version, 1, kind)
