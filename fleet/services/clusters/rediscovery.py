"""Asks members again what they are and serve: each on its own schedule, apart from the heartbeat.

A member is due when `Cluster.discovery_due_at` has passed, or is null because the watcher saw its kinds change. A worker
claims it by moving that time, and asks it in a thread of its own: however slow a member is, it holds up no task, and what it
answers is written whenever it comes. A process asks eight members at once, and a member is asked by one process only.
"""

import random
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q
from structlog import get_logger

from fleet.changes import events
from fleet.core.members.health import State
from fleet.member.errors import MemberError
from fleet.models import Cluster
from fleet.services.clusters import clusters
from fleet.services.members import member_clients, member_facts
from fleet.services.members.member_facts import Findings

log = get_logger(__name__)

REQUEST_S = 10.0
"""For one answer; a member farther away than this is not worth asking."""
CLAIM = timedelta(seconds=90)
"""A member that was asked and has not answered whole is asked again after this."""
_AT_ONCE = 8
_SLOTS = threading.BoundedSemaphore(_AT_ONCE)
_WRITING = threading.Lock()
"""One result is written at a time, so that all threads together need one database connection."""


@dataclass(frozen=True, slots=True)
class Claim:
    cluster: Cluster
    until: datetime
    is_requested: bool
    """Its kinds are known to have changed; else it is asked because time has passed."""


def start(now: datetime, rng: random.Random) -> list[threading.Thread]:
    """Begins to ask members that are due, as many as there are free threads; does not wait for their answers."""
    due = Cluster.objects.filter(_due(now), state=State.READY, failing_since=None)
    threads = []
    for row in due.order_by(F("discovery_due_at").asc(nulls_first=True), "pk")[:_AT_ONCE]:
        if not _SLOTS.acquire(blocking=False):
            break
        claim = _claim(row, now)
        if claim is None:
            _SLOTS.release()
            continue
        thread = threading.Thread(
            target=_ask, args=(claim, now, rng.uniform(0.8, 1.2)), name=f"discover {row.name}", daemon=True
        )
        thread.start()
        threads.append(thread)
    return threads


def _due(now: datetime) -> Q:
    """A time farther away than any schedule sets is of a clock that was wrong."""
    latest = now + 2 * _interval() + CLAIM
    return Q(discovery_due_at=None) | Q(discovery_due_at__lte=now) | Q(discovery_due_at__gt=latest)


def _claim(row: Cluster, now: datetime) -> Claim | None:
    """None when another worker was faster."""
    until = now + CLAIM
    mine = Cluster.objects.filter(pk=row.pk, discovery_due_at=row.discovery_due_at)
    return Claim(row, until, row.discovery_due_at is None) if mine.update(discovery_due_at=until) else None


def _ask(claim: Claim, now: datetime, jitter: float) -> None:
    try:
        findings = _findings(claim)
        if findings is not None:
            with _WRITING:
                try:
                    _write(claim, findings, now, jitter)
                finally:
                    connection.close()
    finally:
        _SLOTS.release()


def _findings(claim: Claim) -> Findings | None:
    row = claim.cluster
    before = Findings(row.version, row.member_uid, row.apis, row.permissions, row.scheduler)
    try:
        client = member_clients.connect(member_clients.access_of(row), timeout_s=REQUEST_S, cluster=row.name)
        try:
            if claim.is_requested or before.rows_of_accounts():
                return member_facts.ask(client, before.apis)
            return member_facts.ask_again(client, before)
        finally:
            client.close()
    except MemberError as e:
        log.warning("discovery failed", cluster=row.name, error=str(e))
        return None


@transaction.atomic
def _write(claim: Claim, findings: Findings, now: datetime, jitter: float) -> None:
    row = Cluster.objects.select_for_update(no_key=True).filter(pk=claim.cluster.pk).first()
    if row is None or row.access != claim.cluster.access:
        return
    changed = clusters.take(row, findings, now)
    if changed:
        clusters.announce(row, changed, now)
        message = f"The cluster is {findings.version} and serves {sum(map(len, findings.apis.values()))} kinds"
        events.record(clusters.change(row), "ClusterChanged", message, now)
    # Only while the claim stands: a change of its kinds that came meanwhile has made it due again.
    claimed = Cluster.objects.filter(pk=row.pk, discovery_due_at=claim.until)
    claimed.update(discovery_due_at=now + jitter * _interval())


def _interval() -> timedelta:
    return timedelta(seconds=settings.CONVOY_MEMBERS.discovery_interval_s)
