"""Namespaces as a person of one cluster uses them: created, listed with their age, deleted with what is in them."""

import json
from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.core.security.token_scopes import Scope
from fleet.member.errors import MemberRefused
from fleet.models import Namespace
from fleet.services.authorization import access, namespaces
from jobs.models import Dependent, Job, Policy
from jobs.services.failover import failover
from tests.support.amc import cells
from tests.support.kubectl import Person, client_of, served
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}


@pytest.fixture
def kubectl(transactional_db, admin, viewer, editor, tmp_path):
    with served(tmp_path) as door:
        yield door


@pytest.fixture
def ada(kubectl) -> Person:
    return kubectl.as_user("ada")


def filled(person: Person, namespace: str, job: str = "llama") -> None:
    """With a job, a policy and a ConfigMap."""
    documents = [yaml.safe_load(POLICY), yaml.safe_load(pytorch_job(job)), {**CONFIG, "metadata": {"name": "settings"}}]
    for document in documents:
        document["metadata"]["namespace"] = namespace
    person.says("apply", "-f", "-", given=yaml.safe_dump_all(documents))


def ages(person: Person) -> dict[str, str]:
    return {row[0]: row[2] for row in cells(person.says("get", "ns", "--no-headers"))}


def test_a_created_namespace_is_listed_with_its_age_and_deleted_at_once_while_it_is_empty(ada):
    assert "Warning" not in ada.says("create", "ns", "research")
    Namespace.objects.update(created_at=timezone.now() - timedelta(hours=3, minutes=1))
    assert ages(ada)["research"] == "3h1m" and "<" not in ages(ada)["default"]
    assert "already exists" in ada.refused("create", "ns", "research")
    assert 'namespace "research" deleted' in ada.says("delete", "ns", "research")
    assert "research" not in ages(ada)
    assert "not found" in ada.refused("delete", "ns", "research")


def test_a_namespace_in_use_is_as_old_as_the_first_thing_in_it(ada):
    filled(ada, "vision")
    Policy.objects.update(created_at=timezone.now() - timedelta(days=3, minutes=1))
    assert ages(ada)["vision"] == "3d"
    Policy.objects.all().delete()
    assert ages(ada)["vision"].endswith("s")


def test_it_deletes_what_is_in_a_namespace_only_after_the_count_is_confirmed(ada):
    filled(ada, "vision")
    filled(ada, "speech")
    refused = ada.refused("delete", "ns", "vision")
    assert "is invalid: metadata.annotations[convoy.dev/delete-objects]" in refused
    assert "vision has 1 ConfigMap, 1 PropagationPolicy, 1 PyTorchJob" in refused
    ada.says("annotate", "--overwrite", "namespace", "vision", "convoy.dev/delete-objects=2")
    assert "must be 3" in ada.refused("delete", "ns", "vision")
    assert Job.objects.count() == 2 and Policy.objects.count() == 2
    ada.says("annotate", "--overwrite", "namespace", "vision", "convoy.dev/delete-objects=3")
    assert "server dry run" in ada.says("delete", "ns", "vision", "--dry-run=server")
    assert Job.objects.filter(namespace="vision").exists()
    assert 'namespace "vision" deleted' in ada.says("delete", "ns", "vision")
    assert {row.namespace for model in (Job, Policy, Dependent) for row in model.objects.all()} == {"speech"}
    assert "vision" not in ages(ada)


def test_it_is_terminating_until_the_last_copy_is_gone_and_a_delete_waits_for_that(ada):
    filled(ada, "vision")
    job = Job.objects.get()
    ada.says("annotate", "namespace", "vision", "convoy.dev/delete-objects=3")
    Job.objects.update(deleting_at=timezone.now())
    ada.says("annotate", "--overwrite", "namespace", "vision", "convoy.dev/delete-objects=2")
    with ada.running("delete", "ns", "vision") as delete:
        while not Namespace.objects.filter(deleting_at__isnull=False).exists():
            assert delete.poll() is None
        assert cells(ada.says("get", "ns", "vision", "--no-headers"))[0][1] == "Terminating"
        assert delete.poll() is None
        filled(ada, "speech")
        for document in (pytorch_job("late"), yaml.safe_dump({**CONFIG, "metadata": {"name": "late"}})):
            refused = ada.refused("create", "-n", "vision", "-f", "-", given=document)
            assert "Forbidden" in refused and "because it is being terminated: 1 job is still being removed" in refused
        failover.finish_deletion(job, timezone.now())
        assert delete.wait(120) == 0
    assert "vision" not in ages(ada)
    filled(ada, "vision")
    assert cells(ada.says("get", "ns", "vision", "--no-headers"))[0][1] == "Active"


def test_it_is_created_again_after_a_deletion_that_waited_for_its_last_job(ada):
    """The row stays behind, because nothing of the delete is left when the last job is gone."""
    namespaces.terminate("vision", now=timezone.now() - timedelta(hours=3))
    assert "vision" not in ages(ada)
    assert "created" in ada.says("create", "ns", "vision")
    assert ages(ada)["vision"].endswith("s")
    assert "already exists" in ada.refused("create", "ns", "vision")


def test_default_and_the_namespaces_of_clusters_are_not_deleted(ada):
    for name in ("default", "kube-system"):
        ada.says("apply", "-f", "-", given=json.dumps({**CONFIG, "metadata": {"name": "a", "namespace": name}}))
        assert "may not be deleted" in ada.refused("delete", "ns", name)
    assert Dependent.objects.count() == 2


def test_an_editor_deletes_their_own_namespace_and_no_other(kubectl, editor, ada):
    filled(ada, "vision")
    filled(ada, "speech")
    eve = kubectl.as_user(editor.get_username())
    eve.says("annotate", "namespace", "vision", "convoy.dev/delete-objects=3")
    assert "Forbidden" in eve.refused("annotate", "namespace", "speech", "convoy.dev/delete-objects=3")
    assert "Forbidden" in eve.refused("delete", "ns", "speech")
    assert "Forbidden" in eve.refused("create", "ns", "mine")
    sam = kubectl.as_user("sam")
    assert "Forbidden" in sam.refused("delete", "ns", "speech")
    assert "deleted" in eve.says("delete", "ns", "vision")
    assert {job.namespace for job in Job.objects.all()} == {"speech"}


def test_a_token_for_namespaces_alone_deletes_nothing_in_them(admin, ada):
    filled(ada, "vision")
    ada.says("annotate", "namespace", "vision", "convoy.dev/delete-objects=3")
    scope = Scope(kinds=frozenset({"Namespace"}))
    _, token = access.mint(admin, "narrow", life=None, now=timezone.now(), scope=scope)
    config = yaml.safe_load(ada.file.read_text())
    config["users"][0]["user"]["token"] = token
    ada.file.write_text(yaml.safe_dump(config))
    assert "Forbidden" in ada.refused("delete", "ns", "vision", "--wait=false")
    assert Job.objects.exists() and Namespace.objects.exists()


@pytest.mark.parametrize(
    "metadata",
    [{"annotations": 5}, {"annotations": ["a"]}, {"annotations": {"a": 5}}, {"annotations": {"a": {}}}, {"labels": ["a"]},
     {"labels": 5}, {"annotations": {"a": "x" * 300_000}}, {"annotations": {"": "x"}}],
    ids=lambda metadata: str(metadata)[:30],
)  # fmt: skip
def test_metadata_of_no_sense_is_refused(ada, metadata):
    ada.says("create", "ns", "research")
    door = client_of(ada.file)
    try:
        door.merge_patch("/api/v1/namespaces/research", {"metadata": metadata})
    except MemberRefused as refusal:
        assert refusal.status in (400, 413, 422)
    assert Namespace.objects.get().annotations == {}
