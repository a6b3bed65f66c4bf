"""Probes, metrics and the console's page: what is open, to whom, and what it says when something is missing."""

import asyncio
import json
from datetime import timedelta

import pytest
from django.test import Client, override_settings
from django.utils import timezone

from deploy.config.asgi import application
from fleet.api.http import liveness
from fleet.core.members import health
from fleet.core.security.audit_sinks import Sinks
from fleet.models import AuditSink, Cluster, Heartbeat, Lease
from tests.support.asgi_door import Reader
from tests.support.people import client_of, person

pytestmark = pytest.mark.django_db


def beat(age_s: float, *roles: str) -> None:
    at = timezone.now() - timedelta(seconds=age_s)
    for role in roles:
        Heartbeat.objects.create(role=role, instance=f"{role}-{age_s}", at=at)


@pytest.mark.parametrize("path", liveness.PATHS)
def test_it_is_alive_without_asking_anybody_whatever_host_is_asked_and_logs_nothing(
    path, django_assert_num_queries, caplog
):
    async def asked() -> Reader:
        reader = Reader(application, "never-given", path, headers=((b"host", b"elsewhere.example"),))
        await reader.task
        return reader

    with django_assert_num_queries(0):
        answer = asyncio.run(asked())
    assert (answer.code, json.loads(answer.body)) == (200, {"status": "ok"})
    assert not caplog.records


def test_it_is_ready_when_every_process_was_heard_of():
    beat(1, "worker", "beat", "watcher")
    answer = Client().get("/readyz?verbose")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok"), answer.json()
    assert set(answer.json()["checks"]) == {
        "database",
        "migrations",
        "broker",
        "worker",
        "beat",
        "watcher",
        "scheduler",
    }


def test_it_is_not_ready_when_one_is_silent():
    beat(1, "worker", "beat")
    beat(31, "watcher")
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert [name for name, check in answer.json()["checks"].items() if not check["ok"]] == ["watcher"]


def test_it_shows_which_watcher_owns_which_members(north, as_viewer):
    beat(1, "worker", "beat", "watcher")
    Lease.objects.create(name=f"watch/{north.uid}", holder="watcher-1", epoch=1)
    Cluster.objects.create(name="south", access={}, state_since=timezone.now(), joined_at=timezone.now())
    detail = Client().get("/readyz?verbose").json()["checks"]["watcher"]["detail"]
    assert detail == "watcher-1: north; no watcher: south"
    checks = {check["name"]: check for check in as_viewer.get("/api/v1/system/").json()["checks"]}
    assert checks["watcher"]["detail"] == detail and checks["watcher"]["ok"]


def test_it_counts_for_scrapers_on_this_machine(north):
    told = Client().get("/metrics").content.decode()
    assert 'convoy_clusters{state="Ready"} 1.0' in told and 'convoy_jobs{state="Queued"} 0.0' in told
    assert 'convoy_gpus{cluster="north",kind="free"} 5.0' in told


@pytest.mark.parametrize(
    "origin", [{"REMOTE_ADDR": "192.0.2.1"}, {"HTTP_X_FORWARDED_FOR": "192.0.2.1"}, {"REMOTE_ADDR": ""}]
)
def test_it_wants_a_token_from_elsewhere(as_admin, as_viewer, origin):
    assert Client().get("/metrics", **origin).status_code == 401
    assert as_viewer.get("/metrics", **origin).status_code == 403
    assert as_admin.get("/metrics", **origin).status_code == 200


def test_it_gives_the_console_every_path_that_is_nobody_elses(settings, tmp_path):
    settings.CONSOLE_DIST = tmp_path
    assert Client().get("/jobs/1234").status_code == 503
    (tmp_path / "index.html").write_text("<title>Convoy</title>")
    for path in ("/", "/jobs", "/clusters/north"):
        answer = Client().get(path)
        assert answer.status_code == 200 and b"Convoy" in answer.content and "csrftoken" in answer.cookies


@pytest.mark.parametrize("path", ["/api/v1/nothing/", "/api/", "/api/v2/jobs/"])
def test_it_tells_what_is_not_there_as_a_problem(path):
    answer = Client().get(path)
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")


def test_it_tells_those_signed_in_how_it_is(as_viewer, as_nobody):
    told = as_viewer.get("/api/v1/system/").json()
    parts = {check["name"]: check["ok"] for check in told["checks"]}
    assert parts["database"] and parts["migrations"] and told["ok"] == all(parts.values())
    assert as_nobody.get("/api/v1/system/").status_code == 401


def test_details_of_the_system_are_for_callers_with_a_role(north, as_viewer, as_admin):
    """They name clusters, and the addresses of audit sinks, which only fleet admins read."""
    Cluster.objects.update(state_reason=sorted(health.UNJUDGED)[0])
    AuditSink.objects.create(name="file", error="https://sink.example refuses", seq=0)
    with override_settings(CONVOY_AUDIT_SINKS=Sinks(file="/var/log/audit")):
        answers = {
            who: client.get("/api/v1/system/").json()
            for who, client in {"nobody": client_of(person("noa")), "viewer": as_viewer, "admin": as_admin}.items()
        }
    shows = {who: ("north" in str(answer), "sink.example" in str(answer)) for who, answer in answers.items()}
    assert shows == {"nobody": (False, False), "viewer": (True, False), "admin": (True, True)}
    assert {len(answer["checks"]) for answer in answers.values()} == {len(answers["admin"]["checks"])}
