"""What applying would do: told in full, in the words of apply, and nothing of it kept."""

import pytest

from fleet.models import AuditEntry, Event
from jobs.models import Job, Policy
from tests.support.books import a_cluster
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db


def preview(client, body: str):
    return client.generic("POST", "/api/v1/apply/preview/", body.encode(), "application/yaml")


def test_it_tells_where_a_job_would_go_and_keeps_nothing(as_admin):
    a_cluster("north", gpus=8)
    a_cluster("small", gpus=1)
    found = preview(as_admin, POLICY + "---\n" + pytorch_job("llama")).json()
    assert [each["action"] for each in found["applied"]] == ["created", "created"]
    [job] = found["jobs"]
    assert (job["name"], job["cluster"], job["reason"]) == ("llama", "north", None)
    assert {each["cluster"]: each["fits"] for each in job["clusters"]} == {"north": True, "small": False}
    assert not any(model.objects.exists() for model in (Job, Policy, Event, AuditEntry))


def test_it_tells_why_a_job_would_wait(as_admin):
    a_cluster("north", gpus=1)
    [job] = preview(as_admin, POLICY + "---\n" + pytorch_job("llama")).json()["jobs"]
    assert job["cluster"] == "" and job["reason"]["code"] == "NoClusterFits"
    assert job["clusters"][0]["missing"] == {"nvidia.com/gpu": 2}


def test_it_tells_that_no_policy_would_claim_it(as_admin):
    [job] = preview(as_admin, pytorch_job("llama")).json()["jobs"]
    assert job["reason"]["code"] == "NoPolicy" and job["policy"] == ""


def test_it_names_the_jobs_that_a_policy_would_claim(as_admin):
    for space, name in (("default", "llama"), ("secret", "bert")):
        job = pytorch_job(name).replace(f"name: {name}", f"name: {name}\n  namespace: {space}")
        assert as_admin.generic("POST", "/api/v1/apply/", job.encode(), "application/yaml").status_code == 200
    [claims] = preview(as_admin, POLICY + "---\n" + pytorch_job("new")).json()["policies"]
    named = {(job["namespace"], job["name"]) for job in claims["jobs"]}
    assert (claims["name"], claims["count"]) == ("example-policy", 2)
    assert named == {("default", "llama"), ("default", "new")}, "a policy claims jobs of its own namespace"
    assert not Job.objects.filter(policy__isnull=False).exists()
    other = POLICY.replace("PyTorchJob", "TFJob")
    assert preview(as_admin, other).json()["policies"][0]["count"] == 0


def test_it_refuses_what_apply_refuses_field_by_field(as_admin):
    answer = preview(as_admin, pytorch_job("Not A Name"))
    assert answer.status_code in (400, 422)
    assert answer.json()["errors"][0]["field"] == "metadata.name"


def test_it_is_for_those_who_may_apply(as_viewer):
    assert preview(as_viewer, pytorch_job("llama")).status_code == 403
