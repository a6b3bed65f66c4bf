"""The notices of a job's pods over REST: in the order of time, and to those who may see the job."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.models import Notice
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db


def test_it_shows_who_was_told_heard_and_left(as_admin):
    books.a_cluster()
    books.apply(pytorch_job("llama"))
    job, now = books.job("llama"), timezone.now()
    about = {"job": job, "attempt": 1, "cluster_name": "north", "node": "n1", "cause": "aws-spot", "scope": "Pods"}
    for number in (2, 1):
        at = now + timedelta(seconds=number)
        row = {
            "notice_id": f"n-{number}",
            "pod": f"llama-worker-{number}",
            "at": at,
            "deadline": at + timedelta(seconds=30),
        }
        Notice.objects.create(**about, **row, heard_at=at if number == 1 else None)
    answer = as_admin.get(f"/api/v1/jobs/{job.uid}/notices/")
    assert answer.status_code == 200, answer.content
    assert [row["pod"] for row in answer.json()] == ["llama-worker-1", "llama-worker-2"]
    assert [bool(row["heard_at"]) for row in answer.json()] == [True, False]
    assert answer.json()[0]["cause"] == "aws-spot" and answer.json()[0]["left_at"] is None


def test_it_knows_no_job_that_is_not_there(as_admin):
    assert as_admin.get("/api/v1/jobs/00000000-0000-0000-0000-000000000000/notices/").status_code == 404
