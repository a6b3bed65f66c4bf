"""Attempts over REST: those of a queue or a cluster that touch a time, of jobs that the caller may read."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import Cluster
from jobs.services.series import attempts
from tests.jobs.services.series.builders import a_run, moment
from tests.support.books import a_cluster

pytestmark = pytest.mark.django_db
URL = "/api/v1/attempts/"


def asked(**params: object) -> dict[str, object]:
    return {"from": moment(0).isoformat(), "to": moment(100).isoformat(), **params}


def spans(client, **params: object) -> list[tuple[str, str]]:
    rows = client.get(URL, asked(**params)).json()["results"]
    return [(row["namespace"], row["cluster"]) for row in rows]


@pytest.fixture
def busy(db) -> Cluster:
    north, south = a_cluster("north"), a_cluster("south")
    a_run(north, 4, -50, -40, -10, namespace="early")
    a_run(north, 4, -50, -40, 10, leaf="root/llm/a", namespace="vision", outcome="Succeeded")
    a_run(south, 2, 50, namespace="speech", leaf="root/llm")
    a_run(south, 2, 200, namespace="late")
    return north


def test_it_lists_what_touches_the_time_the_latest_first(as_admin, busy):
    assert spans(as_admin) == [("speech", "south"), ("vision", "north")]
    last = as_admin.get(URL, asked()).json()["results"][1]
    assert (last["gpus"], last["outcome"], last["ended_at"]) == (
        4,
        "Succeeded",
        moment(10).isoformat().replace("+00:00", "Z"),
    )


def test_it_narrows_to_a_cluster_or_a_queue_with_those_below(as_admin, busy):
    assert spans(as_admin, cluster="south") == [("speech", "south")]
    assert spans(as_admin, queue="root/llm/a") == [("vision", "north")]
    assert len(spans(as_admin, queue="root/llm")) == 2 and spans(as_admin, queue="root/ll") == []


def test_a_caller_sees_attempts_of_own_namespaces_only(as_editor, as_viewer, as_nobody, busy):
    assert spans(as_editor) == [("vision", "north")]
    assert spans(as_viewer) == [("speech", "south")]
    assert as_nobody.get(URL, asked()).status_code in (401, 403)


def test_it_is_bounded_and_costs_a_fixed_number_of_queries(as_admin, busy, monkeypatch):
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert as_admin.get(URL, asked()).status_code == 200
        return len(queries)

    cost()  # the first use of a token is written down
    few = cost()
    for _ in range(10):
        a_run(busy, 1, 30)
    assert cost() == few <= 5
    monkeypatch.setattr(attempts, "MOST", 5)
    answer = as_admin.get(URL, asked()).json()
    assert answer["is_cut"] and len(answer["results"]) == 5
    too_long = as_admin.get(URL, asked(**{"from": moment(-40 * 86400).isoformat()}))
    assert too_long.status_code == 422 and "from" in str(too_long.json()["errors"])
