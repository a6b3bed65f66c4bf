"""What the fleet shows of a job and never stores: it comes back with a changed object, and is no field that somebody wrote."""

from pathlib import Path

import pytest
import yaml
from django.utils import timezone

from jobs.models import Job
from jobs.services.submission import manifests, submit
from tests.acceptance.builders import mpi_job
from tests.support.kubectl import served
from tests.support.world import POLICY

pytestmark = pytest.mark.django_db(transaction=True)
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
CONTAINER = {"name": "c", "image": "x", "resources": {"limits": {"cpu": "1"}}}
BATCH = {"template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}}
JOB = yaml.safe_dump({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sweep"}, "spec": BATCH})


@pytest.fixture
def ada(admin, tmp_path):
    with served(tmp_path) as kubectl:
        yield kubectl.as_user("ada")


def apply(*texts: str) -> list[str]:
    return [
        each.action
        for text in texts
        for each in submit.apply(manifests.parse(text.encode()), by="test", now=timezone.now())
    ]


def test_what_is_read_can_be_written_back_and_is_stored_as_it_was_submitted(ada):
    apply(POLICY, JOB)
    shown = ada.says("get", "job", "sweep", "-oyaml")
    job = Job.objects.get(name="sweep")
    assert yaml.safe_load(shown)["spec"]["selector"] == {"matchLabels": {"convoy.dev/job-uid": str(job.uid)}}
    ada.says("replace", "-f", "-", given=shown)
    ada.says("apply", "--server-side", "-f", "-", given=JOB)
    assert apply(shown) == ["unchanged"]
    assert "selector" not in Job.objects.get(name="sweep").manifest["spec"]


def test_one_that_moves_to_the_server_side_owns_no_more_than_it_wrote(ada):
    apply(POLICY)
    ada.says("apply", "-f", "-", given=JOB)
    assert "Warning" not in ada.says("apply", "--server-side", "-f", "-", given=JOB)
    assert "f:selector" not in ada.says("get", "job", "sweep", "-oyaml", "--show-managed-fields")


def test_a_job_set_may_move_to_the_server_side_and_two_managers_share_its_groups(ada):
    text = (EXAMPLES / "jobset.yaml").read_text()
    ada.says("apply", "-f", str(EXAMPLES / "policy.yaml"), "-f", "-", given=text)
    ada.says("apply", "--server-side", "-f", "-", given=text)
    other = text.replace("replicas: 2", "replicas: 3")
    refused = ada.refused("apply", "--server-side", "--field-manager=other", "-f", "-", given=other)
    assert '.spec.replicatedJobs[name="workers"].replicas' in refused and "1 conflict" in refused


def test_a_job_read_in_another_version_has_the_fields_of_that_version_and_can_be_labelled_by_a_replace(ada):
    launcher = mpi_job(version="v2beta1").replace("spec:\n", "spec:\n  launcherCreationPolicy: AtStartup\n", 1)
    apply(POLICY, launcher)
    shown = yaml.safe_load(ada.says("get", "mpijobs.v1.kubeflow.org", "vgg16", "-oyaml"))
    assert "launcherCreationPolicy" not in shown["spec"]
    shown["metadata"]["labels"] = {"team": "vision"}
    ada.says("replace", "-f", "-", given=yaml.safe_dump(shown))
    job = Job.objects.get(name="vgg16")
    assert job.labels == {"team": "vision"} and job.manifest["spec"]["launcherCreationPolicy"] == "AtStartup"
