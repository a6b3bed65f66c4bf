"""Refused writes in the audit: what was tried is there for who investigates, and a flood of it costs a few lines a minute."""

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from fleet.limits.buckets import Buckets
from fleet.models import AuditEntry
from fleet.services.auditing import audit, refusal_counts
from fleet.services.auditing.refusal_counts import OTHERS, RefusalCounts
from tests.attacks.kube_door import PROXY, Door
from tests.support.people import client_of, person

pytestmark = pytest.mark.django_db
AT_ONCE = 5
MAPS = "/api/v1/namespaces/team-b/configmaps"
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "team-b"}}


@pytest.fixture
def now_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time by which writes are counted: five at once, one more every five seconds."""
    clock = [0.0]
    monkeypatch.setattr(audit, "SINGLY", Buckets(0.2, AT_ONCE, lambda: clock[0]))
    return clock


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> RefusalCounts:
    made = RefusalCounts()
    monkeypatch.setattr(refusal_counts._of_this_process, "refused", made)
    return made


def tries(client: Any, number: int, path: str = "/api/v1/clusters/north/cordon/") -> None:
    for _ in range(number):
        assert client.post(path, {}, format="json").status_code in (403, 404)


def single() -> Counter[str]:
    return Counter(AuditEntry.objects.exclude(name=OTHERS).values_list("actor", flat=True))


def counted() -> dict[tuple[str, str], str]:
    rows = AuditEntry.objects.filter(name=OTHERS)
    return {(row.actor, row.door): row.message.split(" refused")[0] for row in rows}


def test_a_flood_costs_a_few_lines_and_is_counted_to_the_last(counts: RefusalCounts, now_s: list[float]) -> None:
    mal = client_of(person("mal", ("viewer", "team-a")))
    tries(mal, 40)
    counts.write(datetime.now(UTC), last=True)
    assert single() == {"mal": AT_ONCE}
    assert counted() == {("mal", "rest"): f"{40 - AT_ONCE} writes within this minute"}
    assert all(row.outcome == "refused" for row in AuditEntry.objects.all())


def test_a_flood_hides_nothing_of_others_and_of_oneself_only_for_seconds(
    counts: RefusalCounts, now_s: list[float]
) -> None:
    mal, vic = (client_of(person(name, ("viewer", "team-a"))) for name in ("mal", "vic"))
    tries(mal, 40)
    tries(vic, 1)
    now_s[0] = 5.0
    tries(mal, 1, "/api/v1/clusters/south/drain/")
    assert single() == {"mal": AT_ONCE + 1, "vic": 1}
    assert AuditEntry.objects.filter(actor="mal", verb="drain", name="south").exists()


@pytest.mark.django_db(transaction=True)
def test_each_api_is_counted_and_all_share_the_bound(counts: RefusalCounts, now_s: list[float]) -> None:
    user = person("mal", ("viewer", "team-a"))
    door, body = Door(user), json.dumps(MAP).encode()
    for _ in range(4):
        assert door.ask("POST", MAPS, body)[0] == 403
        assert door.ask("POST", f"{PROXY}{MAPS}", body)[0] == 403
    tries(client_of(user), 3)
    counts.write(datetime.now(UTC), last=True)
    assert single() == {"mal": AT_ONCE}
    assert counted() == {
        ("mal", "kubectl"): "1 write within this minute", ("mal", "proxy"): "2 writes within this minute",
        ("mal", "rest"): "3 writes within this minute",
    }  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_a_dry_run_of_what_one_may_not_do_is_written_down() -> None:
    door, body = Door(person("mal", ("viewer", "team-a"))), json.dumps(MAP).encode()
    assert door.ask("POST", MAPS, body, query="dryRun=All")[0] == 403
    assert door.ask("DELETE", f"{MAPS}/a", b'{"dryRun": ["All"]}')[0] == 403
    lines = [(row.verb, row.kind, row.namespace, row.outcome) for row in AuditEntry.objects.order_by("pk")]
    assert lines == [("create", "ConfigMap", "team-b", "refused"), ("delete", "ConfigMap", "team-b", "refused")]
    assert all(row.message.startswith("dry run: ") for row in AuditEntry.objects.all())
