"""What stock kubectl shows as the state of a job is true of the job now, not of an attempt that is over."""

import json

import pytest
from django.utils import timezone

from jobs.core.division.shares import Share, stored
from jobs.core.life.shares import ShareState
from jobs.models import Job
from jobs.services.submission import manifests, submit
from tests.support.kubectl import served
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
RAN = {"conditions": [{"type": "Running", "status": "True"}], "replicaStatuses": {"Master": {"active": 1}}}


@pytest.fixture
def kubectl(admin, tmp_path):
    with served(tmp_path) as door:
        yield door.as_user("ada")


@pytest.mark.parametrize(
    ("state", "shown"), [("Queued", "Created"), ("Suspended", "Suspended"), ("Reclaiming", "Running")]
)
def test_it_shows_no_pods_of_a_job_that_has_left_its_place(kubectl, state, shown):
    text = "\n---\n".join((POLICY, pytorch_job("llama")))
    submit.apply(manifests.parse(text.encode()), by="test", now=timezone.now())
    Job.objects.update(state=state, status=RAN)
    assert kubectl.says("get", "pytorchjobs", "--no-headers").split()[1] == shown
    status = json.loads(kubectl.says("get", "pytorchjob", "llama", "-o", "json"))["status"]
    assert ("replicaStatuses" in status) == (state == "Reclaiming")


def test_a_wait_does_not_compare_the_generation_of_a_copy_with_that_of_the_job(kubectl):
    """A copy is counted anew at each attempt; the job's generation grows with every change of it."""
    text = "\n---\n".join((POLICY, pytorch_job("llama")))
    submit.apply(manifests.parse(text.encode()), by="test", now=timezone.now())
    ready = {"type": "Running", "status": "True", "observedGeneration": 1}
    Job.objects.update(state="Running", generation=3, status={"observedGeneration": 1, "conditions": [ready]})
    kubectl.says("wait", "--for=condition=Running", "pytorchjob/llama", "--timeout=5s")
    shown = json.loads(kubectl.says("get", "pytorchjob", "llama", "-o", "json"))
    assert shown["metadata"]["generation"] == 3 and "observedGeneration" not in json.dumps(shown)


def test_it_gives_the_cause_of_a_failure_as_the_reason_of_the_condition(kubectl):
    text = "\n---\n".join((POLICY, pytorch_job("llama")))
    submit.apply(manifests.parse(text.encode()), by="test", now=timezone.now())
    reason = {
        "code": "AttemptsExhausted",
        "message": "failed by an error of its own program 2 times",
        "cause": "CodeError",
    }
    Job.objects.update(state="Failed", reason=reason)
    status = json.loads(kubectl.says("get", "pytorchjob", "llama", "-o", "json"))["status"]
    (failed,) = [each for each in status["conditions"] if each["type"] == "Failed"]
    assert (failed["reason"], failed["message"]) == ("CodeError", reason["message"])
    assert status["convoy"]["reason"]["cause"] == "CodeError"


def test_a_divided_job_shows_all_clusters_that_have_a_share_of_it(kubectl):
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "x", "image": "i"}]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sweep"}}
    submit.apply([{**job, "spec": {"parallelism": 3, "template": template}}], by="test", now=timezone.now())
    shares = [Share(1, "south", 1, 0), Share(2, "dgx", 2, 0), Share(3, "away", 1, 0, ShareState.LOST)]
    Job.objects.update(state="Running", shares=stored(shares))
    header, row = kubectl.says("get", "jobs.batch", "-o", "wide").splitlines()
    assert row[header.index("CLUSTER") :].split()[0] == "dgx,south"
    status = json.loads(kubectl.says("get", "jobs.batch", "sweep", "-o", "json"))["status"]
    assert status["convoy"]["clusters"] == ["dgx", "south"]
