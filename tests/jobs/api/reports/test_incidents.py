"""Incidents over REST: a page, a story and a post-mortem, for whom it concerns and for nobody else."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import Cluster
from jobs.models import Attempt, Incident, Job
from jobs.services.failover import incidents
from tests.jobs.api.builders import submitted
from tests.support import books
from tests.support.people import client_of, person

pytestmark = pytest.mark.django_db
NOW = timezone.now() - timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def failed(name: str, namespace: str = "vision", **fields) -> Job:
    job = submitted(name, namespace)
    times = {"placed_at": NOW - 10 * MINUTE, "started_at": NOW - 9 * MINUTE, "ended_at": NOW}
    known = {"cluster_name": "north", "gpus": 8, "outcome": "Failed", "cause": "CodeError", "message": "exit code 1"}
    Attempt.objects.create(job=job, number=1, **times | known | fields)
    Job.objects.filter(pk=job.pk).update(state="Moving", attempt=1)
    return job


def outage() -> None:
    books.a_cluster("north")
    Cluster.objects.update(
        state="Unknown", state_reason="ClusterNotReachable", state_message="no answer", state_since=NOW - MINUTE,
        failing_since=NOW - 2 * MINUTE,
    )  # fmt: skip
    incidents.run(NOW - MINUTE)


def listed(client) -> list[dict]:
    answer = client.get("/api/v1/incidents/")
    assert answer.status_code == 200, answer.content
    return answer.json()["results"]


def test_it_lists_them_with_how_many_jobs_each_stopped(as_admin):
    outage()
    job = failed("llama")
    failed("bert", outcome="Lost", cause="Infrastructure")
    incidents.run(NOW)
    own, silent = listed(as_admin)
    assert (own["kind"], own["job"]["id"], own["jobs"], own["waiting"]) == ("JobFailed", str(job.uid), 1, 1)
    assert (silent["kind"], silent["cluster"], silent["job"], silent["stage"]) == (
        "ClusterSilent",
        "north",
        None,
        "Open",
    )


def test_a_story_has_its_steps_in_order_and_a_post_mortem_to_keep(as_admin):
    outage()
    failed("llama", outcome="Lost", cause="Infrastructure")
    incidents.run(NOW)
    (row,) = listed(as_admin)
    told = as_admin.get(f"/api/v1/incidents/{row['id']}/").json()
    assert [step["what"] for step in told["steps"]] == ["Signal", "Declared", "Left"]
    assert told["affected"][0]["job"]["name"] == "llama" and told["gpu_minutes_stopped"] > 8 * 60
    answer = as_admin.get(f"/api/v1/incidents/{row['id']}/postmortem/")
    assert answer["Content-Type"].startswith("text/markdown")
    assert b"# north did not answer" in answer.content and b"vision/llama" in answer.content


def test_a_job_that_left_and_went_on_when_its_cluster_recovered_is_in_the_story():
    outage()
    stayed = {"outcome": "", "cause": "", "message": "", "ended_at": None}
    failed("llama", **stayed, left_at=NOW, returned_at=NOW + MINUTE)
    failed("bert", **stayed, left_at=NOW - 9 * MINUTE, returned_at=NOW - 8 * MINUTE)
    failed("theirs", "speech", **stayed, left_at=NOW, returned_at=NOW + MINUTE)
    Cluster.objects.update(state="Ready", failing_since=None)
    incidents.run(NOW + 2 * MINUTE)
    reader = client_of(person("ada", ("viewer", "vision")))
    (row,) = listed(reader)
    told = reader.get(f"/api/v1/incidents/{row['id']}/").json()
    steps = [(step["what"], (step["job"] or {}).get("name")) for step in told["steps"]]
    assert steps == [
        ("Signal", None), ("Declared", None), ("Left", "llama"), ("Returned", "llama"), ("CauseOver", None)
    ]  # fmt: skip
    written = reader.get(f"/api/v1/incidents/{row['id']}/postmortem/").content.decode()
    assert "- Jobs that were to move and continued there: 1" in written and "continues on north as attempt 1" in written


def test_a_reader_of_one_namespace_sees_outages_and_only_what_hit_its_jobs():
    outage()
    failed("ours", "vision")
    failed("theirs", "speech")
    failed("lost", "speech", outcome="Lost", cause="Infrastructure")
    incidents.run(NOW)
    reader = client_of(person("ada", ("viewer", "vision")))
    rows = listed(reader)
    assert [(row["kind"], row["jobs"], row["other_jobs"]) for row in rows] == [
        ("JobFailed", 1, 0),
        ("ClusterSilent", 0, 1),
    ]
    hidden = Incident.objects.exclude(uid__in=[row["id"] for row in rows]).get()
    for path in ("", "postmortem/"):
        assert reader.get(f"/api/v1/incidents/{hidden.uid}/{path}").status_code == 404
        shown = reader.get(f"/api/v1/incidents/{rows[1]['id']}/{path}")
        assert shown.status_code == 200 and b"lost" not in shown.content.replace(b"not lost", b"")


def test_somebody_without_a_role_reads_none():
    outage()
    incident = Incident.objects.get()
    nobody = client_of(person("eve"))
    for path in ("", f"{incident.uid}/", f"{incident.uid}/postmortem/"):
        assert nobody.get(f"/api/v1/incidents/{path}").status_code == 403


def test_it_filters_by_kind_cluster_and_whether_it_lasts(as_admin):
    outage()
    failed("llama")
    incidents.run(NOW)
    for query, count in (
        ("open=true", 2),
        ("open=false", 0),
        ("kind=JobFailed", 1),
        ("cluster=north", 2),
        ("cluster=x", 0),
    ):
        assert as_admin.get(f"/api/v1/incidents/?{query}").json()["count"] == count, query
    assert as_admin.get("/api/v1/incidents/00000000-0000-0000-0000-000000000000/").status_code == 404


def test_a_page_takes_the_same_number_of_queries_for_one_and_for_many(as_admin, django_assert_max_num_queries):
    for number in range(20):
        failed(f"job-{number}")
    incidents.run(NOW)
    with django_assert_max_num_queries(12):
        assert len(listed(as_admin)) == 20
