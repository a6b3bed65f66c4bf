"""A batch Job and a Volcano Job of one name are two jobs, in every door: the API group tells them apart."""

from pathlib import Path

import pytest
import yaml
from django.db import IntegrityError, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone
from kubernetes import client, config
from kubernetes.watch import Watch

from fleet.changes import journal
from jobs.models import Job
from jobs.services.submission import manifests, submit
from jobs.services.submission.changes import actions
from tests.support.kubectl import served
from tests.support.world import POLICY

pytestmark = pytest.mark.django_db(transaction=True)
VOLCANO = ("batch.volcano.sh", "v1alpha1", "jobs")
EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "volcanojob.yaml"
CONTAINER = {"name": "c", "image": "x", "resources": {"limits": {"cpu": "1"}}}
BATCH = {"template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}}


def apply(*bodies: dict) -> list[str]:
    text = "\n---\n".join((POLICY, *map(yaml.safe_dump, bodies)))
    found = submit.apply(manifests.parse(text.encode()), by="test", now=timezone.now())
    return [each.action for each in found[1:]]


def twins(name: str = "twin") -> list[dict]:
    volcano = yaml.safe_load(EXAMPLE.read_text())
    batch = {"apiVersion": "batch/v1", "kind": "Job", "spec": BATCH}
    return [{**each, "metadata": {"name": name, "namespace": "default"}} for each in (batch, volcano)]


def of(group: str) -> Job:
    return Job.objects.get(group=f"{group}/")


@pytest.fixture
def door(admin, tmp_path):
    with served(tmp_path) as made:
        yield made.as_user("ada")


def test_they_are_created_and_changed_each_by_itself():
    assert apply(*twins()) == ["created", "created"]
    batch, volcano = twins()
    volcano["metadata"]["labels"] = {"team": "vision"}
    assert apply(batch, volcano) == ["unchanged", "configured"]
    assert (of("batch").labels, of("batch.volcano.sh").labels) == ({}, {"team": "vision"})


def test_one_file_may_bring_the_second_of_them_only():
    assert [apply(each) for each in twins()] == [["created"], ["created"]]


def test_two_of_one_group_stay_one_whatever_their_version():
    apply(twins()[0])
    with pytest.raises(IntegrityError):
        Job.objects.create(
            api_version="batch/v2", kind="Job", namespace="default", name="twin", manifest={}, roles=[], total={},
            created_at=timezone.now(), queued_at=timezone.now(),
        )  # fmt: skip


def test_kubectl_shows_and_deletes_the_one_that_is_named(door):
    apply(*twins())
    assert "image: x" in door.says("get", "jobs.v1.batch", "twin", "-oyaml")
    assert "example.com/recommend" in door.says("get", "jobs.batch.volcano.sh", "twin", "-oyaml")
    door.says("delete", "jobs.v1.batch", "twin")
    assert list(Job.objects.values_list("api_version", flat=True)) == ["batch.volcano.sh/v1alpha1"]


def test_rest_narrows_jobs_to_a_group(as_admin):
    apply(*twins())
    rows = as_admin.get("/api/v1/jobs/?kind=Job&group=batch&name=twin").json()["results"]
    assert [each["api_version"] for each in rows] == ["batch/v1"]


def test_the_end_of_one_is_no_news_to_who_watches_the_other(door):
    apply(*twins())
    api = config.new_client_from_config(str(door.file))
    version = journal.head()
    actions.delete(of("batch"), by="test", now=timezone.now())
    actions.suspend(of("batch.volcano.sh"), by="test", now=timezone.now())
    watch, asked = Watch(), {"resource_version": str(version), "timeout_seconds": 5}
    events = watch.stream(client.CustomObjectsApi(api).list_cluster_custom_object, *VOLCANO, **asked)
    assert next(events)["type"] == "MODIFIED"
    watch.stop()


def test_names_made_of_a_job_tell_them_apart(door):
    apply(*twins())
    for made in Job.objects.all():
        made.leaf = "root/a"
        made.save(update_fields=["leaf"])
    names = door.says("get", "queueunits", "-oname").split()
    assert sorted(name.partition("/")[2] for name in names) == ["twin-job", "twin-job.batch.volcano.sh"]


def test_rows_of_before_keep_their_group():
    executor = MigrationExecutor(connection)
    executor.migrate([("jobs", "0005_listing")])
    old = executor.loader.project_state([("jobs", "0005_listing")]).apps.get_model("jobs", "Job")
    now = timezone.now()
    fields = {"namespace": "default", "name": "x", "manifest": {}, "roles": [], "total": {}}
    for version, kind in (("kubeflow.org/v1", "PyTorchJob"), ("batch/v1", "Job"), ("v1", "Odd")):
        old.objects.create(api_version=version, kind=kind, created_at=now, queued_at=now, **fields)
    MigrationExecutor(connection).migrate(MigrationExecutor(connection).loader.graph.leaf_nodes())
    assert sorted(Job.objects.values_list("group", flat=True)) == ["", "batch/", "kubeflow.org/"]
