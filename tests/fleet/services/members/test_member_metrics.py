"""What members measure is asked of all at once, and of none for longer than a person waits."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from fleet.kube.resources import NODE_METRICS
from fleet.member.client import Access, MemberClient
from fleet.models import Cluster
from fleet.services.members import member_metrics
from fleet.services.members.member_metrics import Measured

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 1, tzinfo=UTC)
SILENT = 80


@pytest.fixture
def ended() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_silent_members_keep_nobody_from_the_answers_of_the_others(ended, monkeypatch):
    def answer(resource: object, cluster: Cluster, namespace: str) -> Measured:
        if cluster.name.startswith("silent"):
            ended.wait(20)
        return Measured(cluster.name, {("", "n1"): {}})

    monkeypatch.setattr(member_metrics, "_measured", answer)
    monkeypatch.setattr(member_metrics, "_ANSWER_S", 0.5)
    heard = NOW - timedelta(seconds=20)
    rows = [Cluster(name=f"silent-{number}", last_heartbeat=heard) for number in range(SILENT)]
    rows += [Cluster(name=f"north-{number}", last_heartbeat=NOW) for number in range(40)]
    answers = member_metrics.measured(NODE_METRICS, rows)
    assert [each.cluster for each in answers] == [row.name for row in rows]
    assert {each.error for each in answers[:SILENT]} == {"no answer within 0.5 s"}
    assert all(each.items and not each.error for each in answers[SILENT:])


def test_no_thread_waits_longer_than_its_caller_and_one_member_takes_few(monkeypatch):
    """The member takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = MemberClient(Access(f"https://127.0.0.1:{silent.getsockname()[1]}"), timeout_s=60.0)
        monkeypatch.setattr(member_metrics.member_clients, "client", lambda cluster, timeout_s: client)
        monkeypatch.setattr(member_metrics, "_ANSWER_S", 0.3)
        row = Cluster(name="silent", state=Cluster.State.READY)
        with ThreadPoolExecutor(10) as callers:
            answers = list(callers.map(lambda _: member_metrics.measured(NODE_METRICS, [row])[0], range(10)))
        full = [each for each in answers if "wait for its answer" in each.error]
        assert all(each.error for each in answers) and len(full) == 2
        for _ in range(100):
            if not member_metrics._under_way["silent"]:
                break
            threading.Event().wait(0.05)
        assert not member_metrics._under_way["silent"]
