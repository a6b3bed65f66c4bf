"""One name is one job, in whatever version it was submitted or is read; and applies of either kind after each other."""

import json

import pytest
import yaml

from jobs.models import Job
from tests.acceptance.builders import mpi_job
from tests.support.kubectl import served
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
SUSPEND = '{"spec":{"runPolicy":{"suspend":true}}}'


@pytest.fixture
def ada(transactional_db, admin, tmp_path):
    with served(tmp_path) as door:
        yield door.as_user("ada")


@pytest.fixture
def two_versions(ada):
    newer = yaml.safe_load(mpi_job("newer", version="v2beta1"))
    newer["spec"]["sshAuthMountPath"] = "/home/mpi/.ssh"
    ada.says("apply", "-f", "-", given=f"{mpi_job('older', version='v1')}---\n{yaml.safe_dump(newer)}")
    return ada


def test_it_lists_watches_and_deletes_mpijobs_of_both_versions_under_either(two_versions):
    for resource in ("mpijob", "mpijobs.v1.kubeflow.org", "mpijobs.v2beta1.kubeflow.org"):
        listed = two_versions.says("get", resource, "-oname").split()
        assert listed == ["mpijob.kubeflow.org/newer", "mpijob.kubeflow.org/older"]
    assert len(two_versions.says("get", "all", "-oname").split()) == 2
    with two_versions.running("get", "mpijob", "-w", "--no-headers") as watch:
        assert [watch.stdout.readline().split()[0] for _ in range(2)] == ["newer", "older"]
        two_versions.says("label", "mpijobs.v2beta1.kubeflow.org", "newer", "team=a")
        assert watch.stdout.readline().split()[0] == "newer"
    assert two_versions.says("delete", "mpijob", "--all").count("deleted") == 2
    assert not Job.objects.exists()


def test_it_changes_the_labels_of_a_job_of_the_other_version_and_keeps_its_fields(two_versions):
    two_versions.says("label", "mpijobs.v1.kubeflow.org", "newer", "team=a")
    two_versions.says("annotate", "mpijob", "--all", "note=seen")
    job = Job.objects.get(name="newer")
    assert (job.api_version, job.labels) == ("kubeflow.org/v2beta1", {"team": "a"})
    assert job.manifest["spec"]["sshAuthMountPath"] == "/home/mpi/.ssh"
    assert job.manifest["metadata"]["annotations"]["note"] == "seen"


def test_it_refuses_to_change_its_spec_there_and_names_the_version(two_versions):
    refused = two_versions.refused("patch", "mpijobs.v1.kubeflow.org", "newer", "--type=merge", "-p", SUSPEND)
    assert "is invalid: apiVersion" in refused and "kubectl edit mpijobs.v2beta1.kubeflow.org newer" in refused
    assert not Job.objects.get(name="newer").suspended
    two_versions.says("patch", "mpijobs.v2beta1.kubeflow.org", "newer", "--type=merge", "-p", SUSPEND)
    assert Job.objects.get(name="newer").suspended


def test_a_server_side_apply_after_a_client_side_one_takes_the_fields_over(ada):
    text = pytorch_job("llama").replace("name: llama", "name: llama\n  labels: {team: vision}", 1)
    ada.says("apply", "-f", "-", given=text)
    assert "Warning" not in ada.says("apply", "--server-side", "-f", "-", given=text)
    shown = json.loads(ada.says("get", "pytorchjob", "llama", "-ojson", "--show-managed-fields"))
    managers = {(entry["manager"], entry["operation"]) for entry in shown["metadata"]["managedFields"]}
    assert managers == {("kubectl", "Apply"), ("kubectl-last-applied", "Apply")}
    said = ada.says("apply", "--server-side", "-f", "-", given=pytorch_job("llama"))
    assert "Warning" not in said and Job.objects.get().labels == {}


def test_a_manager_that_gives_up_the_only_annotation_leaves_the_object_as_it_is(ada):
    """`kubectl apply --server-side` does after a client-side apply; a job that has nothing but a name loses its metadata."""
    text = pytorch_job("llama")
    ada.says("apply", "-f", "-", given=text)
    for _ in range(2):
        ada.says(
            "apply", "--server-side", "--field-manager=argocd-controller", "--force-conflicts", "-f", "-", given=text
        )
    assert Job.objects.get().name == "llama"


def test_it_names_a_job_by_generate_name_without_a_word_of_warning(ada):
    text = pytorch_job("llama").replace("name: llama", "generateName: llama-", 1)
    said = ada.says("create", "-f", "-", given=text)
    assert "Warning" not in said and f"{Job.objects.get().name} created" in said
    assert Job.objects.get().name.startswith("llama-")
