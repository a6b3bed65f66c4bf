"""The list of jobs: narrowed by queue, reason and labels, in an order that is steady, counted by group, exported."""

import csv
import io
import json
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from jobs import queries
from jobs.models import Attempt, Job
from tests.jobs.api.builders import names, submitted

pytestmark = pytest.mark.django_db


@pytest.fixture
def three(db: None) -> None:
    for name, leaf, labels in (
        ("a", "root/vision/prod", {"team": "vision", "x.io/tier": "gold"}),
        ("b", "root/vision", {"team": "speech"}),
        ("c", "root/visionary", {}),
    ):
        Job.objects.filter(pk=submitted(name).pk).update(
            leaf=leaf, labels=labels, reason={"code": f"Code{name}", "message": ""}
        )


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("queue=root/vision", "ab"),
        ("queue=root", "abc"),
        ("queue=root/visio", ""),
        ("reason=Codeb", "b"),
        ("labels=team=vision", "a"),
        ("labels=team!=vision", "bc"),
        ("labels=team in (vision,speech)", "ab"),
        ("labels=x.io/tier=gold,team", "a"),
        ("labels=!team", "c"),
    ],
)
def test_it_narrows(as_admin, three, query, found):
    assert "".join(names(as_admin, f"?ordering=name&{query}")) == found


def test_it_names_the_remedy_for_a_selector_that_cannot_be_read(as_admin, three):
    answer = as_admin.get("/api/v1/jobs/?labels=a,,b")
    assert answer.status_code == 422 and "label selector" in answer.json()["detail"]


def test_it_shows_every_job_once_over_all_pages_of_equals(as_admin):
    for number in range(7):
        submitted(f"j{number}")
    shown = [name for page in range(1, 5) for name in names(as_admin, f"?ordering=-priority&page_size=2&page={page}")]
    assert sorted(shown) == [f"j{number}" for number in range(7)]


@pytest.mark.parametrize("by", [*queries.BY, "label:team"])
def test_it_counts_by_any_group(as_admin, three, by):
    answer = as_admin.get(f"/api/v1/jobs/groups/?by={by}").json()
    assert answer["count"] == sum(each["count"] for each in answer["results"]) == 3


def test_it_counts_only_what_matches_and_may_be_seen(as_admin, as_viewer, three):
    vision = {"value": "root/vision/prod", "count": 1, "gpus": 3}
    assert as_admin.get("/api/v1/jobs/groups/?by=queue&search=a").json()["results"] == [vision]
    assert as_viewer.get("/api/v1/jobs/groups/?by=queue").json()["results"] == []


def test_it_refuses_to_count_by_what_there_is_not(as_admin):
    answer = as_admin.get("/api/v1/jobs/groups/?by=colour")
    assert answer.status_code == 422 and "label:KEY" in str(answer.json())


def test_it_exports_what_matches(as_admin, three):
    Job.objects.filter(name="a").update(leaf="=1+1")
    body = b"".join(as_admin.get("/api/v1/jobs/export/?ordering=name&reason=Codea").streaming_content).decode()
    (row,) = csv.DictReader(io.StringIO(body))
    assert (row["name"], row["state"], row["reason"], row["queue"]) == ("a", "Queued", "Codea", "'=1+1")


def test_it_exports_as_json(as_admin, three):
    def exported(query: str) -> list:
        return json.loads(b"".join(as_admin.get(f"/api/v1/jobs/export/?form=json&{query}").streaming_content))

    assert [each["name"] for each in exported("ordering=name")] == ["a", "b", "c"]
    assert exported("search=nothing") == []


def test_it_narrows_and_counts_by_who_submitted(as_admin):
    for name, user in (("a", "ada"), ("b", "ada"), ("c", "grace")):
        Job.objects.filter(pk=submitted(name).pk).update(submitted_by=user)
    assert names(as_admin, "?user=ada&ordering=name") == ["a", "b"]
    groups = as_admin.get("/api/v1/jobs/groups/?by=user").json()["results"]
    assert [(each["value"], each["count"]) for each in groups] == [("ada", 2), ("grace", 1)]


def test_it_says_how_long_the_pods_of_all_attempts_ran(as_admin):
    job, start = submitted("a"), timezone.now() - timedelta(hours=1)
    ended = {"started_at": start, "ended_at": start + timedelta(minutes=10)}
    Attempt.objects.create(job=job, number=1, cluster_name="north", placed_at=start, **ended)
    Attempt.objects.create(job=job, number=2, cluster_name="north", placed_at=start, ended_at=start)
    Attempt.objects.create(job=job, number=3, cluster_name="south", placed_at=start, started_at=start)
    shown = as_admin.get("/api/v1/jobs/").json()["results"][0]
    assert shown["ran_s"] == 600 and datetime.fromisoformat(shown["runs_since"]) == start
