"""Benchmark ``console-lists``: 100,000 jobs on 10,000 nodes; every list the console asks for, narrowed, ordered, counted.

Result in ``.convoy/bench/console-lists-{sqlite,postgresql}.json``: the 95th percentile of each, in milliseconds, over HTTP. The
rows are written as they stand after weeks of work. ``CONVOY_BENCH_JOBS`` changes their number.
"""

import http.client
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.scale.console import product
from tests.support import postgres

pytestmark = pytest.mark.bench
P95_MS = 300
ROUNDS = 20
LISTS = (
    "jobs/?page_size=100", "jobs/?page=500&page_size=100", "jobs/?page=1000&page_size=100",
    "jobs/?page_size=100&ordering=name", "jobs/?page_size=100&ordering=-gpus", "jobs/?page_size=100&ordering=state",
    "jobs/?page_size=100&ordering=namespace", "jobs/?page_size=100&ordering=priority", "jobs/?page=900&ordering=name",
    "jobs/?page_size=100&ordering=-started_at", "jobs/?page=900&ordering=-finished_at", "jobs/?page=900&ordering=state",
    "jobs/?state=Queued", "jobs/?state=Running&ordering=-gpus", "jobs/?state=Succeeded&page=300",
    "jobs/?state=Queued&state=Running&ordering=name", "jobs/?namespace=team-3", "jobs/?kind=pytorchjob&page=20",
    "jobs/?cluster=cluster-2", "jobs/?cluster=cluster-2&ordering=name&page=50", "jobs/?queue=root/team-3",
    "jobs/?queue=root", "jobs/?reason=QuotaExceeded", "jobs/?reason=QuotaExceeded&ordering=-priority", "jobs/?policy=policy-7",
    "jobs/?labels=team%3Dteam-3", "jobs/?labels=team%20in%20(team-1,team-2),tier!%3Dgold", "jobs/?labels=!team",
    "jobs/?labels=user%3Duser-77", "jobs/?labels=tier&ordering=name", "jobs/?search=train-0777", "jobs/?search=nothing",
    "jobs/?search=train&ordering=name", "jobs/?suspended=true",
    *(f"jobs/groups/?by={by}" for by in ("state", "kind", "namespace", "queue", "cluster", "policy", "reason")),
    "jobs/groups/?by=label:team", "jobs/groups/?by=label:user", "jobs/groups/?by=reason&state=Queued",
    "jobs/groups/?by=state&labels=tier%3Dgold", "jobs/groups/?by=cluster&search=train",
    "jobs/?state=Moving&state=Reclaiming&state=Backoff", "policies/", "queues/",
    "clusters/?page_size=200", "clusters/cluster-2/nodes/?page_size=200", "clusters/cluster-2/nodes/?page=10&page_size=200",
    "nodes/?page_size=200", "nodes/?page=50&page_size=200", "nodes/?search=node-00777", "gpus/",
    "events/?page_size=100", "events/?page=1000&page_size=100", "events/?reason=Moving&page_size=100",
    "events/?search=train-0777", "audit/?page_size=100", "quota/tree/",
)  # fmt: skip


@pytest.fixture(params=["sqlite", "postgresql"])
def web(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, tuple[str, int, str]]]:
    if request.param == "sqlite":
        with product(tmp_path) as served:
            yield request.param, served
        return
    with postgres.started() as url, product(tmp_path, url) as served:
        yield request.param, served


def test_every_list_of_the_console_answers_in_time(web: Any, report: Callable[[str, dict[str, Any]], None]) -> None:
    database, (host, port, token) = web
    asked = http.client.HTTPConnection(host, port, timeout=60)
    found = {path: percentiles(asked, path, token) for path in LISTS}
    slowest = max(found, key=lambda path: found[path]["p95"])
    report(f"console-lists-{database}", {"slowest": {slowest: found[slowest]}, "ms": found})
    assert {path: each for path, each in found.items() if each["p95"] > P95_MS} == {}


def percentiles(asked: http.client.HTTPConnection, path: str, token: str) -> dict[str, float]:
    took = sorted(milliseconds(asked, path, token) for _ in range(ROUNDS))
    return {"p50": round(took[ROUNDS // 2], 1), "p95": round(took[ROUNDS * 95 // 100 - 1], 1)}


def milliseconds(asked: http.client.HTTPConnection, path: str, token: str) -> float:
    began = time.perf_counter()
    asked.request("GET", f"/api/v1/{path}", headers={"Authorization": f"Bearer {token}"})
    answer = asked.getresponse()
    body = answer.read()
    assert answer.status == 200, f"{path}: {body[:300]!r}"
    return (time.perf_counter() - began) * 1000
