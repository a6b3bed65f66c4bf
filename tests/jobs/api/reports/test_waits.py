"""Waits over REST: percentiles of what jobs waited before each placement, from the spans that accounting has."""

import csv
import io
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import Cluster
from jobs.models import Attempt, Job
from jobs.services.lifecycle.accounting import usage_spans
from tests.jobs.services.series.builders import a_run, moment
from tests.support.books import a_cluster

pytestmark = pytest.mark.django_db
URL = "/api/v1/waits/"
HOUR = 3600
PAST = -500_000_000


def then(s: float) -> datetime:
    return moment(PAST + s)


@pytest.fixture
def north(db) -> Cluster:
    return a_cluster("north", gpus=64)


def waited(cluster: Cluster, hours: float, placed: float, **fields: str) -> Job:
    """Submitted so many hours before its placement; the second half of the wait was for quota. It ran for an hour."""
    job = a_run(cluster, 1, PAST + placed, PAST + placed, PAST + placed + HOUR, **fields)
    at = Attempt.objects.get(job=job).placed_at
    created = at - timedelta(hours=hours)
    Attempt.objects.filter(job=job).update(outcome="Succeeded")
    Job.objects.filter(pk=job.pk).update(
        created_at=created, finished_at=at + timedelta(hours=1), state=Job.State.SUCCEEDED, charge=None,
        waited=[["quota", (at - timedelta(hours=hours / 2)).isoformat()]],
    )  # fmt: skip
    job.refresh_from_db()
    return job


def asked(client, **params: object) -> dict[str, dict]:
    window = {"from": then(0).isoformat(), "to": then(24 * HOUR).isoformat()}
    answer = client.get(URL, window | params)
    assert answer.status_code == 200, answer.content
    return {row["name"]: row for row in answer.json()["results"]}


def test_it_says_how_long_half_and_nearly_all_of_the_jobs_of_a_queue_waited(as_admin, north):
    for number in range(1, 21):
        waited(north, number / 2, 12 * HOUR, leaf="root/llm")
    waited(north, 0, 13 * HOUR, leaf="root/vision")
    rows = asked(as_admin)
    assert (rows["root/llm"]["count"], rows["root/llm"]["p50_s"], rows["root/llm"]["p95_s"]) == (
        20,
        5 * HOUR,
        9.5 * HOUR,
    )
    assert (rows["root/vision"]["count"], rows["root/vision"]["p95_s"]) == (1, 0)
    assert [step["count"] for step in rows["root/llm"]["trend"] if step["count"]] == [20]


def test_the_waits_add_up_to_what_accounting_says_that_jobs_waited(as_admin, north):
    waited(north, 3, 12 * HOUR)
    waited(north, 2, 14 * HOUR)
    window = {"from": then(0).isoformat(), "to": then(24 * HOUR).isoformat()}
    [row] = as_admin.get("/api/v1/accounting/", window).json()["results"]
    by_reason = asked(as_admin, by="reason")
    assert by_reason.keys() == row["waited_by_reason_hours"].keys()
    assert sum(row["waited_by_reason_hours"].values()) == 5
    assert (by_reason["Unknown"]["p50_s"], by_reason["Unknown"]["p95_s"]) == (2 * HOUR, 3 * HOUR)


@pytest.mark.parametrize("settled", [False, True])
def test_a_wait_that_began_before_the_time_counts_whole_and_one_that_goes_on_counts_apart(as_admin, north, settled):
    waited(north, 30, 1 * HOUR, leaf="root/llm")
    later = waited(north, 10, 30 * HOUR, leaf="root/llm")
    Job.objects.filter(pk=later.pk).update(accounted=False)
    if settled:
        usage_spans.settle(then(100 * HOUR))
        assert Job.objects.filter(accounted=True).exists()
    row = asked(as_admin)["root/llm"]
    assert (row["count"], row["p50_s"]) == (1, 30 * HOUR)
    assert (row["waiting"], row["longest_s"]) == (1, 4 * HOUR)


def test_it_says_it_of_own_teams_only_and_as_a_file(as_viewer, as_admin, north):
    waited(north, 1, 12 * HOUR, namespace="speech", leaf="root/speech")
    waited(north, 2, 12 * HOUR, namespace="secret", leaf="root/secret")
    assert asked(as_viewer).keys() == {"root/speech"} and asked(as_viewer, by="team").keys() == {"speech"}
    window = {"from": then(0).isoformat(), "to": then(24 * HOUR).isoformat(), "by": "team", "form": "csv"}
    rows = list(csv.DictReader(io.StringIO(as_admin.get(URL, window).content.decode())))
    assert [(row["team"], bool(row["from"]), row["p95_s"]) for row in rows] == [
        ("secret", False, "7200.0"), ("speech", False, "3600.0"), ("secret", True, "7200.0"), ("speech", True, "3600.0"),
    ]  # fmt: skip
    assert as_admin.get(URL, {"by": "mood"}).status_code == 422


def test_it_costs_a_fixed_number_of_queries(as_admin, north):
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            asked(as_admin)
        return len(queries)

    waited(north, 1, 12 * HOUR)
    cost()  # the first use of a token is written down
    few = cost()
    for _ in range(10):
        waited(north, 1, 12 * HOUR)
    assert cost() == few <= 14
