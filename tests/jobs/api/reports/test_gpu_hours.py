"""GPU-hours over REST: exactly the attempts of the jobs that the caller may read, of deleted jobs as well."""

import csv
import io
from datetime import datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.errors import InvalidInput
from fleet.models import Cluster
from jobs.models import Attempt, Job
from jobs.services.failover import failover
from jobs.services.lifecycle.accounting import runs, usage_spans
from jobs.services.series import hours
from tests.jobs.services.series.builders import EPOCH, a_run, moment
from tests.support.books import a_cluster

pytestmark = pytest.mark.django_db
URL = "/api/v1/gpu-hours/"
HOUR = 3600
PAST = -500_000_000
"""Seconds from the epoch of the builders to a time that is over."""


def then(s: float) -> datetime:
    return moment(PAST + s)


def ran(cluster: Cluster, gpus: int, *times: float, **fields: str) -> Job:
    return a_run(cluster, gpus, *(PAST + at for at in times), **fields)


def asked(**params: object) -> dict[str, object]:
    return {"from": then(0).isoformat(), "to": then(10 * HOUR).isoformat(), **params}


def hours_by(client, by: str, **params: object) -> dict[str, tuple[float, float]]:
    rows = client.get(URL, asked(by=by, **params)).json()["results"]
    return {row["name"]: (row["used_gpu_hours"], row["held_gpu_hours"]) for row in rows}


def delete(job: Job, at: float) -> None:
    Job.objects.filter(pk=job.pk).update(deleting_at=then(at))
    job.refresh_from_db()
    assert failover.finish_deletion(job, then(at))


@pytest.fixture
def busy(db) -> Cluster:
    north = a_cluster("north", gpus=8)
    north.nodes.update(labels={"nvidia.com/gpu.product": "A100"})
    a_cluster("south", gpus=8)
    used = ran(north, 4, 0, HOUR, 3 * HOUR, leaf="root/llm", namespace="vision")
    Job.objects.filter(pk=used.pk).update(submitted_by="ada")
    ran(Cluster.objects.get(name="south"), 2, 9 * HOUR, 9 * HOUR, namespace="speech")
    return north


def test_it_counts_use_and_holding_by_team_user_queue_cluster_and_model(as_admin, busy):
    assert hours_by(as_admin, "team") == {"vision": (8, 4), "speech": (2, 0)}
    assert hours_by(as_admin, "user") == {"ada": (8, 4), "": (2, 0)}
    assert hours_by(as_admin, "queue") == {"root/llm": (8, 4), "": (2, 0)}
    assert hours_by(as_admin, "cluster") == {"north": (8, 4), "south": (2, 0)}
    assert hours_by(as_admin, "model") == {"A100": (8, 4), "": (2, 0)}


def test_a_cluster_of_several_models_is_named_so(as_admin, busy):
    node = busy.nodes.get()
    node.pk, node.name = None, "other"
    node.labels = {"nvidia.com/gpu.product": "T4"}
    node.save()
    assert hours_by(as_admin, "model") == {usage_spans.SEVERAL: (8, 4), "": (2, 0)}


def test_only_the_part_within_the_time_counts(as_admin, busy):
    part = {"from": then(2 * HOUR).isoformat(), "to": then(2.5 * HOUR).isoformat(), "by": "team"}
    [row] = as_admin.get(URL, part).json()["results"]
    assert (row["name"], row["used_gpu_hours"], row["held_gpu_hours"], row["attempts"]) == ("vision", 2, 0, 1)


def test_the_hours_of_a_deleted_job_stay_with_its_team_and_user(as_admin, busy):
    before = {by: hours_by(as_admin, by) for by in hours.Owner}
    for job in Job.objects.all():
        delete(job, 10 * HOUR)
    assert not Attempt.objects.exists()
    assert {by: hours_by(as_admin, by) for by in hours.Owner} == before


def test_a_job_that_is_deleted_between_the_two_queries_counts_once(busy):
    job = Job.objects.get(namespace="vision")
    reading = runs.between(EPOCH + PAST, EPOCH + PAST + 10 * HOUR, ["vision"])
    first = next(reading)
    delete(job, 5 * HOUR)
    assert [first, *reading] == [first]


def test_a_caller_sees_the_hours_and_the_names_of_own_namespaces_only(as_editor, as_viewer, as_nobody, busy):
    delete(Job.objects.get(namespace="speech"), 10 * HOUR)
    for by in hours.Owner:
        own, other = as_editor.get(URL, asked(by=by)).content, as_viewer.get(URL, asked(by=by)).content
        assert not {"speech", "south"} & set(own.decode().split('"')), by
        assert not {"vision", "north", "ada", "root/llm", "A100"} & set(other.decode().split('"')), by
    assert hours_by(as_viewer, "team") == {"speech": (2, 0)}
    assert as_nobody.get(URL, asked()).status_code in (401, 403)


def test_it_is_a_file_for_a_spreadsheet(as_admin, busy):
    Job.objects.filter(namespace="vision").update(submitted_by="=1+1")
    answer = as_admin.get(URL, asked(by="user", form="csv"), HTTP_ACCEPT="text/csv")
    assert answer["Content-Type"].startswith("text/csv") and "gpu-hours-by-user.csv" in answer["Content-Disposition"]
    rows = list(csv.reader(io.StringIO(answer.content.decode())))
    assert rows == [
        ["user", "used_gpu_hours", "held_gpu_hours", "used_gpu_s", "held_gpu_s", "attempts"],
        ["'=1+1", "8.0", "4.0", "28800.0", "14400.0", "1"],
        ["", "2.0", "0.0", "7200.0", "0.0", "1"],
    ]


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"by": "person"}, "by"),
        ({"form": "xml"}, "form"),
        ({"from": "yesterday"}, "from"),
        ({"from": then(-32 * 24 * HOUR).isoformat()}, "from"),
        ({"to": then(-1).isoformat()}, "from"),
    ],
)
def test_it_names_the_field_that_is_wrong(as_viewer, params, field):
    answer = as_viewer.get(URL, asked(**params))
    assert answer.status_code == 422 and field in str(answer.json()["errors"]), answer.content


def test_it_counts_no_more_attempts_than_it_may(busy):
    span = then(0), then(10 * HOUR), then(10 * HOUR), None
    assert len(hours.read(hours.Owner.TEAM, *span, most_runs=2)) == 2
    with pytest.raises(InvalidInput, match="choose a later from"):
        hours.read(hours.Owner.TEAM, *span, most_runs=1)


def test_it_costs_a_fixed_number_of_queries(as_admin, busy):
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert as_admin.get(URL, asked(by="model")).status_code == 200
        return len(queries)

    cost()  # the first use of a token is written down
    few = cost()
    for i in range(20):
        delete(ran(busy, 1, 80, 80, 90, namespace=f"team-{i}"), 100)
        ran(busy, 1, 80, 80, namespace=f"team-{i}")
    assert cost() == few <= 8
