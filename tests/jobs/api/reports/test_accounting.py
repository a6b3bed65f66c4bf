"""Accounting over REST: figures equal a recount of every second, before and after jobs are settled and deleted."""

import csv
import io
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from django.db import transaction

from fleet.models import Cluster, Grant
from jobs.api.reports import accounting_metrics
from jobs.core.failover.rules import Outcome
from jobs.models import Attempt, Job, Notice, UsageSpan
from jobs.services.failover import failover
from jobs.services.lifecycle.accounting import usage_spans
from tests.jobs.services.series.builders import a_run, moment
from tests.support.books import a_cluster
from tests.support.people import client_of, person

pytestmark = pytest.mark.django_db
URL = "/api/v1/accounting/"
HOUR = 3600
PAST = -500_000_000
PARTS = ("starting", "useful", "preempted", "lost", "stopped")


def then(s: float) -> datetime:
    return moment(PAST + s)


def ran(cluster: Cluster, gpus: int, *times: float, outcome: str = "Succeeded", **fields: str) -> Job:
    """A job that was submitted an hour before its placement, and has ended."""
    job = a_run(cluster, gpus, *(PAST + at for at in times), **fields)
    placed, ended = Attempt.objects.get(job=job).placed_at, Attempt.objects.get(job=job).ended_at
    Attempt.objects.filter(job=job).update(outcome=outcome)
    state = Job.State.SUCCEEDED if outcome == "Succeeded" else Job.State.FAILED
    waited = [["quota", (placed - timedelta(minutes=30)).isoformat()]]
    created = placed - timedelta(hours=1)
    Job.objects.filter(pk=job.pk).update(created_at=created, finished_at=ended, state=state, waited=waited, charge=None)
    job.refresh_from_db()
    return job


def asked(client, **params: object) -> dict[str, dict]:
    window = {"from": then(-9 * HOUR).isoformat(), "to": then(100 * HOUR).isoformat()}
    return {row["name"]: row for row in client.get(URL, window | params).json()["results"]}


def delete(job: Job, at: datetime) -> None:
    Job.objects.filter(pk=job.pk).update(deleting_at=at)
    job.refresh_from_db()
    assert failover.finish_deletion(job, at)


@pytest.fixture
def north(db) -> Cluster:
    north = a_cluster("north", gpus=64)
    north.nodes.update(labels={"nvidia.com/gpu.product": "H100"})
    Cluster.objects.update(labels={"gpu-hour-cost.convoy.dev/H100": "2.5"})
    return north


def test_it_says_what_became_of_the_hours_how_long_jobs_waited_and_what_they_cost(as_admin, north):
    ran(north, 4, 0, HOUR, 3 * HOUR, namespace="vision", leaf="root/llm")
    ran(north, 2, 0, 0, 5 * HOUR, outcome=Outcome.RECLAIMED, namespace="vision")
    ran(north, 1, 0, 0, 8 * HOUR, outcome=Outcome.LOST, namespace="speech")
    row = asked(as_admin)["vision"]
    assert [row[f"{part}_gpu_hours"] for part in PARTS] == [4, 8, 10, 0, 0]
    assert (row["gpu_hours"], row["goodput"], row["cost"], row["attempts"]) == (22, round(8 / 22, 6), 55, 2)
    assert (row["waited_hours"]["quota"], row["waited_hours"]["queue"]) == (1, 1)
    assert asked(as_admin)["speech"]["lost_gpu_hours"] == 8
    assert asked(as_admin, by="model")["H100"]["gpu_hours"] == 30
    assert asked(as_admin, by="queue")["root/llm"]["gpu_hours"] == 12


def test_the_answer_is_the_same_before_and_after_jobs_are_settled_and_deleted_whatever_the_fleet_became(
    as_admin, north
):
    jobs = [ran(north, 2, at * HOUR, (at + 1) * HOUR, (at + 4) * HOUR, namespace="vision") for at in range(3)]
    before = {by: asked(as_admin, by=by) for by in ("team", "user", "queue", "cluster", "model", "month")}
    assert usage_spans.settle(then(50 * HOUR)) == 3 and usage_spans.settle(then(50 * HOUR)) == 0
    Cluster.objects.update(labels={"gpu-hour-cost.convoy.dev/H100": "99"})
    for job in jobs:
        delete(Job.objects.get(pk=job.pk), then(60 * HOUR))
    assert not Job.objects.exists() and UsageSpan.objects.count() == 12
    assert {by: asked(as_admin, by=by) for by in before} == before


def test_waiting_is_split_by_the_codes_of_reasons_before_and_after_jobs_are_settled(as_admin, north):
    ran(north, 2, 0, HOUR, 4 * HOUR, namespace="vision")
    old = ran(north, 2, 0, HOUR, 4 * HOUR, namespace="vision")
    codes = [["QuotaExceeded", then(-HOUR / 2).isoformat()], ["BudgetSpent", then(-HOUR / 4).isoformat()]]
    Job.objects.exclude(pk=old.pk).update(waited_codes=codes)
    before = asked(as_admin)
    reasons = before["vision"]["waited_by_reason_hours"]
    assert reasons == {"BudgetSpent": 0.25, "QuotaExceeded": 0.25, "Unknown": 1, "WaitingForScheduler": 0.5}
    assert sum(reasons.values()) == sum(before["vision"]["waited_hours"].values())
    rows = asked(as_admin, by="reason")
    assert {code: sum(row["waited_hours"].values()) for code, row in rows.items()} == reasons
    assert usage_spans.settle(then(50 * HOUR)) == 2
    assert asked(as_admin) == before and asked(as_admin, by="reason") == rows


def test_a_job_that_is_deleted_before_it_was_settled_is_kept_by_the_same_transaction(as_admin, north):
    job = ran(north, 2, 0, HOUR, 4 * HOUR, namespace="vision")
    before = asked(as_admin)
    delete(job, then(5 * HOUR))
    assert asked(as_admin) == before and UsageSpan.objects.exists()


def test_a_crash_while_jobs_are_settled_counts_them_once(as_admin, north, monkeypatch):
    ran(north, 2, 0, HOUR, 4 * HOUR, namespace="vision")
    before = asked(as_admin)
    Job.objects.update(accounted=True)
    assert asked(as_admin) == {}
    Job.objects.update(accounted=False)
    usage_spans._append(Job.objects.all(), then(9 * HOUR))
    Job.objects.update(accounted=False)  # as a restored backup may have it
    assert asked(as_admin) == before
    usage_spans.settle(then(9 * HOUR))
    assert asked(as_admin) == before


@pytest.mark.parametrize(("says", "left", "unsaved", "unknown"), [
    (None, None, 0, 8), (5 * HOUR, None, 6, 0), ("true", None, 0, 0), (0, None, 8, 0),
    (9 * HOUR, None, 0, 8),  # of a later attempt
    (None, 5 * HOUR, 6, 0), (3 * HOUR, 6 * HOUR, 4, 0),
])  # fmt: skip
def test_it_says_what_was_lost_since_the_last_checkpoint_where_that_is_known(
    as_admin, north, says, left, unsaved, unknown
):
    """Two GPUs that ran for four hours, from 4 to 8, and were then taken away."""
    job = ran(north, 2, 3 * HOUR, 4 * HOUR, 8 * HOUR, outcome=Outcome.RECLAIMED)
    if says is not None:
        value = says if says == "true" else then(says).isoformat()
        job.manifest = {"metadata": {"annotations": {"convoy.dev/checkpointed": value}}}
        job.save(update_fields=["manifest"])
    if left is not None:
        Notice.objects.create(job=job, attempt=1, notice_id="n", pod="p", at=then(left), deadline=then(left), saved_step=9,
                              left_at=then(left))  # fmt: skip
    before = asked(as_admin)["vision"]
    assert [before[f"{part}_gpu_hours"] for part in ("preempted", "unsaved", "unknown", "starting")] == [
        8,
        unsaved,
        unknown,
        2,
    ]
    usage_spans.settle(then(50 * HOUR))
    assert asked(as_admin)["vision"] == before


def test_months_split_what_runs_across_them(as_admin, north):
    begin = datetime(2020, 2, 29, 22, tzinfo=UTC)
    job = ran(north, 3, 0, 0, HOUR)
    Attempt.objects.filter(job=job).update(placed_at=begin, started_at=begin, ended_at=begin + timedelta(hours=5))
    Job.objects.update(created_at=begin, finished_at=begin + timedelta(hours=5), waited=[])
    params = {"by": "month", "from": "2020-02-01T00:00:00Z", "to": "2020-04-01T00:00:00Z"}
    rows = as_admin.get(URL, params).json()["results"]
    assert [(row["name"], row["gpu_hours"]) for row in rows] == [("2020-02", 6), ("2020-03", 9)]


def test_one_reads_of_the_teams_whose_jobs_one_may_read_as_csv_as_well(north):
    ran(north, 4, 0, 0, HOUR, namespace="vision")
    ran(north, 4, 0, 0, HOUR, namespace="secret")
    usage_spans.settle(then(2 * HOUR))
    ran(north, 4, 0, 0, HOUR, namespace="secret")
    eva = client_of(person("eva", (Grant.Role.VIEWER, "vision")))
    assert list(asked(eva)) == ["vision"]
    window = {"from": then(-9 * HOUR).isoformat(), "to": then(100 * HOUR).isoformat(), "form": "csv"}
    answer = eva.get(URL, window)
    [row] = csv.DictReader(io.StringIO(answer.content.decode()))
    assert (row["team"], row["gpu_hours"], row["waited_quota_hours"]) == ("vision", "4.0", "0.5")
    assert answer["Content-Disposition"] == 'attachment; filename="accounting-by-team.csv"'
    assert eva.get(URL, {"by": "gender"}).status_code == 422
    assert eva.get(URL, {"from": "2020-01-01T00:00:00Z", "to": "2022-01-01T00:00:00Z"}).status_code == 422


@pytest.mark.parametrize("seed", range(6))
def test_figures_equal_a_recount_that_knows_only_who_held_what_when(as_admin, north, seed):
    rng, expected = Random(seed), defaultdict(float)
    outcomes = {Outcome.SUCCEEDED: "useful", Outcome.RECLAIMED: "preempted", Outcome.FAILED: "lost",
                Outcome.SUSPENDED: "stopped", Outcome.LOST: "lost", Outcome.DRAINED: "preempted"}  # fmt: skip
    for _ in range(12):
        outcome, team, gpus = rng.choice(list(outcomes)), rng.choice("abc"), rng.randint(0, 8)
        placed = rng.uniform(0, 90 * HOUR)
        started = placed + rng.uniform(0, 2 * HOUR)
        ended = started + rng.uniform(0, 20 * HOUR)
        job = ran(north, gpus, placed, started, ended, outcome=outcome, namespace=team)
        for second, until, part in ((placed, started, "starting"), (started, ended, outcomes[outcome])):
            expected[team, part] += gpus * max(0.0, min(until, 100 * HOUR) - second)
        if rng.random() < 0.3:
            with transaction.atomic():  # the writer dies before its transaction ends
                usage_spans.settle(then(200 * HOUR))
                transaction.set_rollback(True)
        if rng.random() < 0.3:
            usage_spans.settle(then(200 * HOUR))
        if rng.random() < 0.3:
            delete(Job.objects.get(pk=job.pk), then(200 * HOUR))
    rows = asked(as_admin)
    for (team, part), gpu_seconds in expected.items():
        assert rows.get(team, {}).get(f"{part}_gpu_hours", 0) * HOUR == pytest.approx(gpu_seconds, abs=0.2)


def test_prometheus_has_the_day_by_team(north, monkeypatch):
    ran(north, 4, 0, HOUR, 3 * HOUR, namespace="vision")
    accounting_metrics._last.clear()
    midnight = then(0).replace(hour=0, minute=0, second=0, microsecond=0)
    monkeypatch.setattr(accounting_metrics, "_last", [])
    families = list(accounting_metrics.families(max(then(3 * HOUR), midnight)))
    samples = {(each.name, *each.labels.values()): each.value for family in families for each in family.samples}
    today = sum(value for key, value in samples.items() if key[0] == "convoy_accounting_gpu_hours")
    assert 0 < today <= 12 and ("convoy_accounting_cost", "vision") in samples
    [goodput] = [value for key, value in samples.items() if key[0] == "convoy_goodput_ratio"]
    assert 0 < goodput <= 1
