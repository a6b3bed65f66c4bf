"""Goodput over REST: what became of the time of jobs, and what cost most of it, from the spans that accounting has."""

import csv
import io
from datetime import timedelta

import pytest

from fleet.models import Cluster
from jobs.core.failover.rules import Outcome
from jobs.models import Attempt, Hang, Job, Notice, Pace, UsageSpan
from jobs.services.lifecycle.accounting import usage_spans
from tests.jobs.services.series.builders import a_run, moment
from tests.support.books import a_cluster

pytestmark = pytest.mark.django_db
HOUR = 3600
PAST = -500_000_000


@pytest.fixture
def north(db) -> Cluster:
    north = a_cluster("north", gpus=64)
    north.nodes.update(labels={"nvidia.com/gpu.product": "H100"})
    return north


@pytest.fixture
def restarted(north) -> Job:
    """Ran for three hours until a node failed it, an hour after it was saved; an hour later it ran for two more."""
    job = a_run(north, 8, PAST, PAST + 0, PAST + 3 * HOUR, outcome=Outcome.FAILED)
    saved = moment(PAST + 2 * HOUR)
    Notice.objects.create(
        job=job, attempt=1, cluster_name="north", notice_id="n", pod="p", cause="c", scope="Pods", at=saved, deadline=saved,
        left_at=saved, saved_step=9,
    )  # fmt: skip
    diagnosis = {"category": "infrastructure", "node": "node-7"}
    Attempt.objects.filter(job=job).update(cause="Infrastructure", diagnosis=diagnosis)
    Attempt.objects.create(
        job=job, number=2, cluster_name="north", outcome="Succeeded", placed_at=moment(PAST + 3.5 * HOUR),
        started_at=moment(PAST + 4 * HOUR), ended_at=moment(PAST + 6 * HOUR),
    )  # fmt: skip
    ended = {"state": Job.State.SUCCEEDED, "finished_at": moment(PAST + 6 * HOUR), "charge": None, "attempt": 2}
    Job.objects.filter(pk=job.pk).update(**ended)
    job.refresh_from_db()
    return job


def asked(client, **params) -> dict[str, dict]:
    window = {"from": moment(PAST - HOUR).isoformat(), "to": moment(PAST + 9 * HOUR).isoformat()}
    answer = client.get("/api/v1/goodput/", window | params)
    assert answer.status_code == 200, answer.content
    return {row["name"]: row for row in answer.json()["results"]}


def test_what_a_drained_node_cost_is_that_of_a_preemption_and_no_failure(as_admin, north):
    a_run(north, 8, PAST, PAST + 0, PAST + 3 * HOUR, outcome=Outcome.DRAINED)
    row = asked(as_admin, by="class")["preemption"]
    assert (row["gpu_hours"]["unknown"], row["failures"]) == (24, 0)


def test_it_says_which_class_which_node_and_which_job_cost_the_gpu_hours(as_admin, restarted):
    row = asked(as_admin, by="class")["infrastructure"]
    assert {part: hours for part, hours in row["gpu_hours"].items() if hours} == {"lost": 8, "waiting": 4, "restart": 4}
    assert (row["failures"], row["mtbf_hours"]) == (1, 5)
    row = asked(as_admin, by="node")["north/node-7"]
    assert (row["failures"], row["mtbf_hours"], row["gpu_hours"]["lost"]) == (1, 10, 8)
    row = asked(as_admin, by="job")[f"{restarted.namespace}/{restarted.name}"]
    assert (row["gpu_hours"]["productive"], row["ettr"]) == (32, round(4 / 6, 6))
    assert (
        asked(as_admin, by="model")["H100"]["mtbf_hours"] == asked(as_admin, by="cluster")["north"]["mtbf_hours"] == 5
    )


def test_a_deleted_job_keeps_its_name(as_admin, restarted):
    now = moment(PAST + 7 * HOUR)
    usage_spans.keep(restarted, now)
    title = f"{restarted.namespace}/{restarted.name}"
    restarted.delete()
    assert list(asked(as_admin, by="job")) == [title]
    UsageSpan.objects.update(name="")
    assert list(asked(as_admin, by="job")) == [str(restarted.uid)]


def test_it_says_of_each_attempt_of_a_job_what_became_of_its_time(as_admin, restarted):
    answer = as_admin.get(f"/api/v1/jobs/{restarted.uid}/goodput/").json()
    first, second = answer["attempts"]
    assert (first["outcome"], first["category"], first["seconds"]["lost"]) == ("Failed", "infrastructure", HOUR)
    assert (second["seconds"]["restart"], second["seconds"]["productive"]) == (HOUR / 2, 2 * HOUR)
    assert (answer["total"]["ettr"], answer["total"]["failures"]) == (round(4 / 6, 6), 1)


def test_time_that_a_job_hung_and_that_its_checkpoints_took_is_not_productive(as_admin, restarted):
    begin, end = moment(PAST + 4.5 * HOUR), moment(PAST + 5 * HOUR)
    Hang.objects.create(job=restarted, attempt=2, step=9, since=begin, found_at=end, over_at=end, policy="Notify")
    Pace.objects.create(job=restarted, attempt=2, step=9, step_at=end, seen_at=end, saving_s=600)
    seconds = as_admin.get(f"/api/v1/jobs/{restarted.uid}/goodput/").json()["attempts"][1]["seconds"]
    assert (seconds["hung"], seconds["checkpoint"], seconds["productive"]) == (1800, 450, 4950)


def test_it_is_a_file_for_spreadsheets_too(as_admin, restarted):
    window = {"from": moment(PAST - HOUR).isoformat(), "to": moment(PAST + 9 * HOUR).isoformat()}
    answer = as_admin.get("/api/v1/goodput/", {**window, "by": "fleet", "form": "csv"})
    [row] = csv.DictReader(io.StringIO(answer.content.decode()))
    assert (row["fleet"], row["productive_gpu_hours"], row["lost_s"], row["failures"]) == (
        "fleet",
        "32.0",
        "3600.0",
        "1",
    )


def test_a_time_that_is_too_long_or_another_grouping_is_refused(as_admin, db):
    late = (moment(PAST) + timedelta(days=93)).isoformat()
    assert as_admin.get("/api/v1/goodput/", {"from": moment(PAST).isoformat(), "to": late}).status_code == 422
    assert as_admin.get("/api/v1/goodput/", {"by": "weather"}).status_code == 422


def test_it_takes_as_many_queries_for_many_jobs_as_for_one(as_admin, north, django_assert_max_num_queries):
    for n in range(12):
        a_run(north, 1, PAST + n, PAST + n, PAST + HOUR, outcome=Outcome.FAILED)
    with django_assert_max_num_queries(25):
        assert asked(as_admin, by="class")["unknown"]["failures"] == 12
