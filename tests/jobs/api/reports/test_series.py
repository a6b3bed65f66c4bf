"""Values over time over REST: what one may ask for, what one sees of it, and what it costs."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import Cluster
from fleet.services.authorization import access
from jobs.services.series import recording
from tests.jobs.services.series.builders import EPOCH, a_run, moment, record
from tests.support.books import a_cluster
from tests.support.quotas import apply_tree, gpus, leaf

pytestmark = pytest.mark.django_db
URL = "/api/v1/series/"


def at(s: float) -> str:
    return moment(s).isoformat()


@pytest.fixture
def busy(db) -> Cluster:
    apply_tree(leaf("vision", "vision", min=gpus(4, 8)["min"], max=gpus(4, 8)["max"]))
    north = a_cluster("north", gpus=8)
    record(20)
    a_run(north, 4, 30, 30, namespace="vision", leaf="root/vision")
    a_run(north, 2, 30, 30, namespace="speech")
    record(60, 70)
    return north


def asked(**params: object) -> dict[str, object]:
    return {"from": at(30), "to": at(50), "step": 10, **params}


def test_it_answers_one_value_for_each_step(as_viewer, busy):
    answer = as_viewer.get(URL, asked(metric="used,held")).json()
    assert answer == {
        "by": "fleet", "start": EPOCH + 30, "step": 10, "count": 2, "is_cut": False,
        "series": [{"metric": "used", "name": "", "values": [6, 6]}],
    }  # fmt: skip


def test_it_answers_for_a_queue_what_its_quota_was(as_editor, busy):
    params = asked(metric="min,max,charged,borrowed", by="queue", name="root/vision")
    series = as_editor.get(URL, params).json()["series"]
    assert {each["metric"]: each["values"] for each in series} == {
        "min": [4, 4], "max": [8, 8], "charged": [0, 0], "borrowed": [0, 0],
    }  # fmt: skip


def test_an_editor_of_a_namespace_sees_no_other_team(as_editor, as_viewer, as_admin, busy):
    def teams(client, **params):
        return [each["name"] for each in client.get(URL, asked(metric="used", by="team", **params)).json()["series"]]

    assert teams(as_admin) == ["speech", "vision"]
    assert (teams(as_editor), teams(as_viewer)) == (["vision"], ["speech"])
    assert teams(as_editor, name="speech") == [] == teams(as_editor, name="nobody")


def test_a_queue_of_another_team_is_not_in_the_answer(as_editor, as_viewer, as_admin, busy):
    def queues(client, **params):
        return [each["name"] for each in client.get(URL, asked(metric="max", by="queue", **params)).json()["series"]]

    assert queues(as_admin) == queues(as_editor) == ["root", "root/vision"]
    assert queues(as_viewer) == [] == queues(as_viewer, name="root/vision")


def test_a_token_for_another_kind_reads_no_queue(admin, busy):
    from fleet.core.security.token_scopes import Scope
    from tests.support.people import APIClient

    _, text = access.mint(admin, "t", life=None, now=moment(0), scope=Scope(kinds=frozenset({"Cluster"})))
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    assert client.get(URL, asked(metric="used")).status_code == 200
    for by in ("queue", "team", "model"):
        assert client.get(URL, asked(metric="used", by=by)).status_code == 403


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "metric"),
        ({"metric": "used,nonsense"}, "metric"),
        ({"metric": "borrowed", "by": "team"}, "metric"),
        ({"metric": "used", "by": "person"}, "by"),
        ({"metric": "used", "step": "7"}, "step"),
        ({"metric": "used", "step": "10", "from": at(0), "to": at(86400)}, "step"),
        ({"metric": "used", "from": at(0), "to": at(86400 * 10_000)}, "step"),
        ({"metric": "used", "from": "yesterday"}, "from"),
        ({"metric": "used", "from": "2026-03-01T12:00:00"}, "from"),
        ({"metric": "used", "to": "2026-13-41T12:00:00Z"}, "to"),
        ({"metric": "used", "from": at(60), "to": at(30)}, "from"),
    ],
)
def test_it_names_the_field_that_is_wrong(as_viewer, params, field):
    answer = as_viewer.get(URL, params)
    assert answer.status_code == 422, answer.content
    assert field in str(answer.json()["errors"])


def test_it_chooses_the_finest_step_that_fits(as_viewer):
    for hours, step in ((1, 10), (24, 60), (7 * 24, 3600)):
        answer = as_viewer.get(URL, {"metric": "used", "from": at(0), "to": at(hours * 3600)}).json()
        assert answer["step"] == step and answer["count"] <= 1500


def test_it_says_that_an_answer_is_cut(as_admin, busy):
    for i in range(30):
        a_run(busy, 1, 60, 60, namespace=f"team-{i}")
    record(200)
    answer = as_admin.get(URL, {"metric": "used", "by": "team", "from": at(0), "to": at(12_000)}).json()
    assert answer["is_cut"] and len(answer["series"]) * answer["count"] <= 30_000


def test_it_costs_a_fixed_number_of_queries(as_admin, busy):
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert as_admin.get(URL, asked(metric="used,held,waiting", by="team")).status_code == 200
        return len(queries)

    cost()  # the first use of a token is written down
    few = cost()
    for i in range(20):
        a_run(busy, 1, 80, 80, namespace=f"team-{i}")
    record(200, recorder=recording.Recorder())
    assert cost() == few <= 8


def test_it_answers_before_anything_was_recorded(as_viewer):
    assert as_viewer.get(URL, asked(metric="used")).json()["series"] == []


def test_it_refuses_who_is_not_signed_in(as_nobody):
    assert as_nobody.get(URL, asked(metric="used")).status_code in (401, 403)
