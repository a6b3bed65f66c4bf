"""Who lent to whom, and what was used of late, over REST: from attempts, by the trees of their time."""

import csv
import io
import json
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.db import clock
from fleet.models import Cluster
from jobs.models import Job
from jobs.services.failover import failover
from jobs.services.scheduling.demand import use
from jobs.services.series import lending
from quotas.models import Queue, QuotaGrant, QuotaRevision
from quotas.services import trees
from tests.jobs.services.series.builders import a_run, moment
from tests.support.books import a_cluster
from tests.support.people import client_of, person
from tests.support.quotas import GPU, apply_tree, gpus, leaf

pytestmark = pytest.mark.django_db
HOUR = 3600
PAST = -500_000_000
WEIGHT = {"attributes": {"weight": "3"}}


def then(s: float) -> datetime:
    return moment(PAST + s)


def ran(cluster: Cluster, count: int, *times: float, **fields: str) -> None:
    a_run(cluster, count, *(PAST + at for at in times), **fields)


@pytest.fixture
def busy(db, monkeypatch) -> Cluster:
    """llm is promised 6 of 8 GPUs, speech 2; speech uses 5 for 4 hours, in the last two of which llm uses 4."""
    monkeypatch.setattr(clock, "now", lambda: then(9 * HOUR))
    north = a_cluster("north", gpus=8)
    total = {GPU: 8}
    apply_tree(leaf("llm", "vision", **gpus(6, 8), **WEIGHT), leaf("speech", "speech", **gpus(2, 8)), total=total)
    QuotaRevision.objects.update(at=then(-HOUR))
    ran(north, 5, 0, 0, 4 * HOUR, leaf="root/speech", namespace="speech")
    ran(north, 4, 2 * HOUR, 3 * HOUR, 4 * HOUR, leaf="root/llm", namespace="vision")
    Job.objects.update(state="Succeeded", charge=None)
    return north


def asked(client, report: str, **params: object):
    window = {"from": then(0).isoformat(), "to": then(8 * HOUR).isoformat()}
    answer = client.get(f"/api/v1/{report}/", window | params)
    assert answer.status_code == 200, answer.content
    return answer if params.get("form") else answer.json()


def flows(client, **params: object) -> dict[tuple[str, str], float]:
    return {(row["lender"], row["borrower"]): row["gpu_hours"] for row in asked(client, "lending", **params)["results"]}


def test_it_says_who_lent_how_many_gpu_hours_to_whom(as_admin, busy):
    # 3 above min for 4 hours; llm has 6 idle at first, then 2.
    assert flows(as_admin) == {("root/llm", "root/speech"): 3 * 2 + 2 * 2, ("root", "root/speech"): 2}
    rows = list(csv.DictReader(io.StringIO(asked(as_admin, "lending", form="csv").content.decode())))
    assert [row["gpu_hours"] for row in rows] == ["10.0", "2.0"]


def test_it_counts_by_the_tree_that_was_in_force_and_says_when_none_was(as_admin, busy):
    QuotaRevision.objects.update(at=then(HOUR))
    answer = asked(as_admin, "lending")
    assert answer["without_tree_hours"] == 1
    assert flows(as_admin) == {("root/llm", "root/speech"): 3 + 2 * 2, ("root", "root/speech"): 2}


def test_a_min_that_a_window_raises_again_and_again_is_lent_each_time(as_admin, busy):
    Job.objects.filter(namespace="vision").delete()
    half = {"cron": "0 * * * *", "duration": "30m", "min": {GPU: 6}}
    apply_tree(
        leaf("llm", "vision", **gpus(4, 8), attributes={"windows": json.dumps([half])}),
        leaf("speech", "speech", **gpus(2, 8)), total={GPU: 8},
    )  # fmt: skip
    QuotaRevision.objects.update(at=then(-2 * HOUR))
    # llm lends 3 of 6 in the first half of each hour; then 2 are in no min, and it lends 1.
    assert flows(as_admin) == {("root/llm", "root/speech"): 4 * (1.5 + 0.5), ("root", "root/speech"): 4 * 1}


def test_others_have_no_name_for_who_may_not_read_them(as_viewer, busy):
    text = asked(as_viewer, "lending", form="csv").content.decode()
    assert "root/speech" in text and "llm" not in text
    assert flows(as_viewer)["", "root/speech"] == 10
    rows = {row["path"]: row for row in asked(as_viewer, "shares")["results"]}
    assert rows.keys() == {"", "root/speech"}
    assert rows[""]["entitled"] + rows["root/speech"]["entitled"] == 1


def saved_at(*times: float) -> None:
    for revision, at in zip(QuotaRevision.objects.order_by("generation"), times, strict=True):
        QuotaRevision.objects.filter(pk=revision.pk).update(at=then(at * HOUR))


def names_change_hands() -> None:
    """What was speech's is llm's from now on, under a tree that was deleted in between."""
    trees.delete("tree", by="system", now=then(5 * HOUR))
    apply_tree(leaf("voice", "speech", **gpus(2, 8)), leaf("speech", "vision", **gpus(6, 8)), total={GPU: 8})


def test_trees_saved_while_the_clock_was_ahead_are_counted_once(as_admin, busy):
    before = flows(as_admin)
    for low in (5, 6):
        apply_tree(
            leaf("llm", "vision", **gpus(low, 8), **WEIGHT), leaf("speech", "speech", **gpus(2, 8)), total={GPU: 8}
        )
    saved_at(-1, 3.5, 1)
    assert flows(as_admin) == before
    saved_at(-1, 6, -0.5)
    assert flows(as_admin) == before


def test_a_name_that_was_another_teams_shows_nothing_of_it(as_viewer, busy):
    names_change_hands()
    saved_at(-1, 4, 5)
    ran(Cluster.objects.get(), 1, 6 * HOUR, 6 * HOUR, 7 * HOUR, leaf="root/speech", namespace="vision")
    assert "root/speech" not in asked(as_viewer, "lending", form="csv").content.decode()
    assert flows(as_viewer, to=then(4 * HOUR - 1).isoformat()).keys() == {("", "root/speech"), ("root", "root/speech")}


def test_a_deleted_tree_shows_the_own_queue_of_its_time(as_viewer, busy):
    before = flows(as_viewer)
    trees.delete("tree", by="system", now=then(5 * HOUR))
    saved_at(-1, 4)
    assert flows(as_viewer) == before and before


def test_a_lead_reads_nothing_of_what_had_the_name_of_their_node_before(busy):
    names_change_hands()
    saved_at(-1, 4, 5)
    Queue.objects.update(created_at=then(5 * HOUR))
    ran(Cluster.objects.get(), 7, 6 * HOUR, 6 * HOUR, 7 * HOUR, leaf="root/speech", namespace="vision")
    lead = person("lena", ("viewer", "audio"))
    QuotaGrant.objects.create(user=lead, path="root/speech")
    assert flows(client_of(lead), **{"from": then(5 * HOUR).isoformat()}) == {("", "root/speech"): 1}
    assert flows(client_of(lead)) == {}


def test_shares_of_now_are_those_that_the_scheduler_goes_by_also_of_deleted_jobs(as_admin, busy, monkeypatch):
    monkeypatch.setattr(use, "_last", [])
    job = a_run(busy, 2, PAST, PAST, PAST + HOUR, leaf="root/llm")
    type(job).objects.filter(pk=job.pk).update(deleting_at=then(2 * HOUR))
    job.refresh_from_db()
    assert failover.finish_deletion(job, then(2 * HOUR))
    apply_tree(
        leaf("llm", "vision", **gpus(6, 8), **WEIGHT), leaf("speech", "speech", **gpus(2, 8)), total={GPU: 16},
        attributes={"fair-share": "OverTime"},
    )  # fmt: skip
    answer = asked(as_admin, "shares")
    of_scheduler = {path: 0.0 for path in ("root/llm", "root/speech")}
    for (path, _), seconds in use.so_far(then(8 * HOUR)).items():
        of_scheduler[path] += seconds / HOUR
    rows = {row["path"]: row for row in answer["results"]}
    assert {path: row["gpu_hours"][-1] for path, row in rows.items()} == pytest.approx(of_scheduler, rel=1e-4)
    assert (rows["root/llm"]["entitled"], rows["root/llm"]["decides"]) == (0.75, True)
    assert rows["root/speech"]["gpu_hours"][0] == 0 and rows["root/speech"]["shares"][0] is None
    assert answer["times"][-1] - answer["times"][0] == 8 * HOUR


def test_use_that_is_kept_no_more_is_no_share_of_nothing(as_admin, busy, settings):
    settings.CONVOY_CYCLE = replace(settings.CONVOY_CYCLE, share_half_life_s=HOUR)
    refused = as_admin.get("/api/v1/shares/", {"from": then(0).isoformat(), "to": then(8 * HOUR).isoformat()})
    assert refused.status_code == 422
    assert [fault["field"] for fault in refused.json()["errors"]] == ["from"]
    assert f"is {then(0):%FT%TZ}" in refused.content.decode()
    usual = as_admin.get("/api/v1/shares/").json()
    assert usual["earliest"] in refused.content.decode()
    assert usual["times"][0] == datetime.fromisoformat(usual["earliest"]).timestamp() == then(2 * HOUR).timestamp()
    assert asked(as_admin, "shares", **{"from": usual["earliest"]})["times"][0] == usual["times"][0]


def test_both_cost_a_fixed_number_of_queries(as_admin, busy):
    def cost(report: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            asked(as_admin, report)
        return len(queries)

    cost("lending")  # the first use of a token is written down
    few = cost("lending"), cost("shares")
    for _ in range(10):
        ran(busy, 1, HOUR, HOUR, 2 * HOUR, leaf="root/llm")
    assert (cost("lending"), cost("shares")) == few
    assert few[0] <= 16 and few[1] <= 8


def refusal(client) -> str:
    answer = client.get("/api/v1/lending/", {"from": then(0).isoformat(), "to": then(8 * HOUR).isoformat()})
    assert (answer.status_code, [fault["field"] for fault in answer.json()["errors"]]) == (422, ["from"])
    return answer.content.decode()


@pytest.mark.parametrize("most", ["MOST_SPANS", "MOST_STEPS", "MOST_NODES", "MOST_FLOWS"])
def test_lending_that_takes_too_long_to_count_is_refused_with_the_remedy(as_admin, busy, monkeypatch, most):
    monkeypatch.setattr(lending, most, 1)
    assert "choose a later from" in refusal(as_admin)


def test_a_window_that_opens_more_often_than_one_answer_counts_is_refused(as_admin, busy, monkeypatch):
    monkeypatch.setattr(lending, "MOST_TREES", 10)
    each = {"cron": "0 * * * *", "duration": "30m", "min": {GPU: 6}}
    apply_tree(leaf("llm", "vision", **gpus(4, 8), attributes={"windows": json.dumps([each])}), total={GPU: 8})
    QuotaRevision.objects.update(at=then(-2 * HOUR))
    assert "openings and closings of windows" in refusal(as_admin)


def test_lending_reads_nothing_of_jobs_that_only_waited(as_admin, busy, monkeypatch):
    with CaptureQueriesContext(connection) as before:
        answer = asked(as_admin, "lending")
    waiting = [
        Job(
            kind="Job", api_version="batch/v1", namespace="vision", name=f"waits-{number}", manifest={}, roles=[], gpus=1,
            leaf="root/llm", created_at=then(0), queued_at=then(0), state="Queued", total={},
        )
        for number in range(600)
    ]  # fmt: skip
    Job.objects.bulk_create(waiting)
    monkeypatch.setattr(lending, "MOST_SPANS", 10)
    with CaptureQueriesContext(connection) as after:
        assert asked(as_admin, "lending") == answer
    assert len(after) <= len(before)


def test_a_time_beyond_what_one_answer_covers_is_refused(as_admin, busy):
    early = (then(0) - timedelta(days=100)).isoformat()
    for report in ("lending", "shares"):
        answer = as_admin.get(f"/api/v1/{report}/", {"from": early, "to": then(0).isoformat()})
        assert answer.status_code == 422 and "days before to" in str(answer.json()["errors"])
