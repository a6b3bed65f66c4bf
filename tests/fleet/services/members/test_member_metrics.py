"""What members measure is asked of all at once, and of none for longer than a person waits."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from fleet.kube.resources import NODE_METRICS
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
