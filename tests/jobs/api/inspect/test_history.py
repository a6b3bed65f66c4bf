"""A job's past over REST: its timeline as it grows, what each attempt was placed by, and its copy in the member."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from jobs.models import Attempt, Job
from jobs.services.submission.changes import actions
from tests.jobs.api.builders import submitted, url
from tests.support.fixtures import unswept, worker, world
from tests.support.world import POLICY, pytorch_job

__all__ = ["unswept", "worker", "world"]


@pytest.mark.django_db
def test_it_tells_whose_hands_a_waiting_job_is_in(as_admin):
    job = submitted("a")
    answer = as_admin.get(url(job, "timeline/")).json()
    assert answer["ended_at"] is None
    assert [each["owner"] for each in answer["slices"]] == ["queue"] and answer["slices"][0]["open"]
    assert {"gate": "queue", "passage": "now"} in answer["gates"]


@pytest.mark.django_db
def test_it_tells_a_suspension_and_its_end(as_admin):
    job, now = submitted("a"), timezone.now()
    actions.suspend(job, by="t", now=now + timedelta(seconds=5))
    actions.resume(job, by="t", now=now + timedelta(seconds=9))
    assert [owner for owner, _ in Job.objects.get().waited] == ["suspended", "queue"]


@pytest.mark.django_db
def test_it_has_no_copy_of_a_job_that_is_nowhere(as_admin):
    answer = as_admin.get(url(submitted("a"), "copy/"))
    assert answer.status_code == 404 and "no copy" in answer.json()["detail"]


@pytest.mark.django_db
def test_it_shows_why_an_attempt_failed_and_which_pods_show_it(as_admin):
    job, now = submitted("a"), timezone.now()
    pod = {"pod": "a-worker-0", "phase": "Failed", "reason": "OOMKilled", "exit_code": 137, "node_ready": False}
    ended = {"cluster_name": "north", "placed_at": now, "ended_at": now, "outcome": "Failed"}
    Attempt.objects.create(job=job, number=1, **ended, cause="OutOfMemory", evidence=[pod])
    sizes = [[1_795_000_000_000, 6], [1_795_000_060_500, 4]]
    Attempt.objects.create(job=job, number=2, cluster_name="south", placed_at=now, gpus=5, sizes=sizes)
    failed, running = as_admin.get(url(job, "attempts/")).json()["results"]
    assert (failed["cause"], failed["evidence"]) == ("OutOfMemory", [pod])
    assert (running["cause"], running["evidence"]) == (None, [])
    assert (failed["gpus"], failed["sizes"], running["gpus"]) == (None, [], 5)
    before = [(datetime.fromisoformat(each["until"]).timestamp(), each["gpus"]) for each in running["sizes"]]
    assert before == [(1_795_000_000, 6), (1_795_000_060.5, 4)]


@pytest.mark.django_db(transaction=True)
def test_it_follows_a_job_to_its_member(world, as_admin):
    world.member("north", 4)
    world.apply(POLICY, pytorch_job("llama", duration="10h"))
    job = world.expect("llama", "Running")
    owners = [each["owner"] for each in as_admin.get(url(job, "timeline/")).json()["slices"]]
    assert owners[0] == "queue" and owners[-1] == "running" and {"member", "image"} & {*owners}
    (attempt,) = as_admin.get(url(job, "attempts/")).json()["results"]
    assert [each["cluster"] for each in attempt["explanation"]] == ["north"]
    copy = as_admin.get(url(job, "copy/")).json()
    assert (copy["cluster"], copy["manifest"]["metadata"]["name"]) == ("north", "llama")
