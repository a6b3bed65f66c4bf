"""The rows the judge reads, by SQL of its own and in one snapshot: what the product's models call them does not matter here."""

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

Row = dict[str, Any]
_QUERIES = {
    "jobs": "SELECT id, uid, name, state, attempt, reason, charge, suspended, deleting_at, status, shares, roles FROM jobs_job",
    "works": "SELECT job_uid, attempt, state, claim, message FROM jobs_work",
    "attempts": "SELECT job_id, number, cluster_name, ended_at, outcome, message FROM jobs_attempt",
    "holds": "SELECT job_uid, attempt FROM fleet_hold WHERE released_at IS NULL",
    "nodes": "SELECT c.name AS cluster, n.name, n.requested FROM fleet_node n JOIN fleet_cluster c ON c.id = n.cluster_id",
    "pods": "SELECT c.name AS cluster, p.name, p.phase FROM fleet_pod p JOIN fleet_cluster c ON c.id = p.cluster_id",
    "clusters": "SELECT name, state, state_reason, taints, stale_since FROM fleet_cluster",
}
_TIMELINE = "SELECT first_at, count, source, regarding_name, reason, message FROM fleet_event ORDER BY id"
_JSON = ("reason", "charge", "requested", "taints", "status", "shares", "roles")
_UIDS = ("uid", "job_uid")


@dataclass(frozen=True, slots=True)
class Rows:
    jobs: list[Row]
    works: list[Row]
    attempts: list[Row]
    holds: list[Row]
    nodes: list[Row]
    pods: list[Row]
    clusters: list[Row]


def counting(job: Row) -> set[int]:
    """The attempts whose copies are to be there: the last one; of a divided job, those of the shares that are not lost."""
    shares = job.get("shares") or []
    return {share["attempt"] for share in shares if share["state"] != "Lost"} if shares else {job["attempt"]}


def read(database: str | Path) -> Rows | None:
    """Rows of one moment; None: the database does not answer."""
    try:
        with _connected(database) as run:
            return Rows(**{name: [_plain(row) for row in run(query)] for name, query in _QUERIES.items()})
    except (psycopg.Error, sqlite3.Error):
        return None


def timeline(database: str | Path) -> list[Row]:
    """What the product says that happened, for a person who reads a failure."""
    try:
        with _connected(database) as run:
            return [dict(row) for row in run(_TIMELINE)]
    except (psycopg.Error, sqlite3.Error):
        return []


@contextlib.contextmanager
def _connected(database: str | Path) -> Iterator[Any]:
    if isinstance(database, Path):
        with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=2.0)) as line:
            line.row_factory = sqlite3.Row
            line.execute("BEGIN")
            yield lambda query: [dict(row) for row in line.execute(query)]
        return
    options = "-c statement_timeout=2000 -c default_transaction_isolation=repeatable\\ read"
    with psycopg.connect(database, connect_timeout=2, options=options, row_factory=dict_row) as connection:
        yield lambda query: connection.execute(query).fetchall()


def _plain(row: Row) -> Row:
    plain = dict(row)
    for name in _JSON:
        if isinstance(plain.get(name), str):
            plain[name] = json.loads(plain[name])
    for name in _UIDS:
        if name in plain:
            plain[name] = str(UUID(str(plain[name])))
    return plain
