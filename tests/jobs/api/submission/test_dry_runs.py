"""What would become of a job in the queues: told beforehand, with who would have to leave for it, and nothing done."""

import pytest
import yaml
from django.utils import timezone

from jobs.models import Job
from tests.support import books
from tests.support.quotas import GPU, PLENTY, apply_tree, gpus, leaf
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db
LABEL = "quota.scheduling.alibabacloud.com/name"


def job(name: str, queue: str, **fields) -> str:
    body = yaml.safe_load(pytorch_job(name, **fields))
    body["metadata"]["labels"] = {LABEL: queue}
    return yaml.safe_dump(body)


def dry_run(client, text: str, policy: str = POLICY) -> dict:
    answer = client.generic("POST", "/api/v1/quota/dry-run/", f"{policy}---\n{text}".encode(), "application/yaml")
    assert answer.status_code == 200, answer.content
    [found] = answer.json()["jobs"]
    return found


@pytest.fixture
def lent(db):
    """b runs on what a was promised."""
    books.a_cluster(gpus=6)
    apply_tree(leaf("a", **gpus(3, 6)), leaf("b", **gpus(3, 6)), total={**PLENTY, GPU: 6})
    books.apply(job("old", "b"), job("young", "b"))
    assert books.cycle() == 2
    Job.objects.update(state="Running", started_at=timezone.now())
    Job.objects.filter(name="old").update(priority=1)


def test_it_tells_whom_a_job_would_take_its_place_back_from_and_does_nothing(as_admin, lent):
    found = dry_run(as_admin, job("mine", "a"))
    assert (found["outcome"], found["leaf"], found["cluster"]) == ("Reclaims", "root/a", "north")
    [victim] = found["reclaims"]
    assert (victim["name"], victim["leaf"], victim["cluster"]) == ("default/young", "root/b", "north")
    assert victim["message"] == "root/b is 3 nvidia.com/gpu above its min"
    assert set(Job.objects.values_list("name", "state")) == {("old", "Running"), ("young", "Running")}


def test_it_tells_why_a_job_would_wait(as_admin, lent):
    found = dry_run(as_admin, job("more", "b"))
    assert (found["outcome"], found["cluster"], found["reclaims"]) == ("Waits", "", [])
    assert found["reason"]["code"] == "QuotaExceeded"


def test_it_tells_where_a_job_would_start(as_admin, lent):
    books.end("old")
    found = dry_run(as_admin, job("mine", "a"))
    assert (found["outcome"], found["cluster"], found["reason"]) == ("Starts", "north", None)


def test_it_does_not_name_jobs_that_are_not_the_callers_to_see(as_editor, lent):
    text = yaml.safe_load(job("mine", "a"))
    text["metadata"]["namespace"] = "vision"
    ours = yaml.safe_load(POLICY)
    ours["metadata"]["namespace"] = "vision"
    [victim] = dry_run(as_editor, yaml.safe_dump_all([text, ours]), "")["reclaims"]
    assert (victim["id"], victim["name"], victim["leaf"]) == ("", "", "root/b")
