"""The heartbeat: looks at every member at once, and writes down what is different.

Members are asked in parallel and each has two seconds, so that a slow one delays nobody. A look that finds what was known
writes a time and no journal entry. What a member is and serves is asked again now and then, and when the watcher saw its
kinds change (`Cluster.discovered_at` is null).
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import transaction
from structlog import get_logger

from fleet import events
from fleet.core import disruption, health
from fleet.core.health import Health, Look, State
from fleet.member import discovery
from fleet.member.client import Access, MemberClient
from fleet.member.errors import MemberDenied, MemberError, MemberMissing
from fleet.models import Cluster
from fleet.services import clusters, member_clients, member_facts, pictures
from fleet.services.member_facts import Findings

log = get_logger(__name__)

LOOK_S = 2.0
ASK_S = 5.0
_AT_ONCE = 32
_HEALTH_PATHS = ("/readyz", "/healthz", "/version")
_FOR_MEMBERS_ONLY = "/api"
_REFUSED = (
    "The cluster refuses the credentials, so its jobs run on unseen and none is moved; renew them without detaching it"
)


def check_all(now: datetime) -> None:
    """One look at every member. A cluster whose state is different is announced, with taints to match."""
    pictures.resume(now)
    rows = list(Cluster.objects.all())
    looks = _looks(rows)
    for row, look, is_now in zip(rows, looks, _judge(rows, looks, now), strict=True):
        _write(row, look, is_now, now)
    pictures.review(now)
    stale = [row for row, look in zip(rows, looks, strict=True) if look.healthy and _is_stale(row, now)]
    for row, findings in _discoveries(stale):
        _take(row, findings, now)


def look(client: MemberClient) -> Look:
    """Asks the member how it is, and then something it tells only those whose credentials it takes."""
    try:
        for path in _HEALTH_PATHS:
            if _says_well(client, path):
                client.get_text(_FOR_MEMBERS_ONLY)
                return Look(answered=True, healthy=True)
    except MemberDenied as e:
        return Look(True, False, health.CREDENTIALS_REFUSED, f"{_REFUSED}: {e.message}"[:500])
    except MemberError as e:
        if e.status:
            return Look(True, False, "ClusterNotHealthy", f"The cluster says it is not well: {e.message}"[:500])
        return Look(False, False, "ClusterNotReachable", e.message[:500], e.raw[:500])
    return Look(True, False, "ClusterNotHealthy", "The server does not answer like a Kubernetes API server.")


def _says_well(client: MemberClient, path: str) -> bool:
    """False when the member does not serve this path, or not to us."""
    try:
        client.get_text(path)
    except MemberMissing:
        return False
    except MemberDenied as e:
        if e.status == 403:
            return False
        raise
    return True


def _looks(rows: list[Cluster]) -> list[Look]:
    """One look each. Whoever has not answered when the time is up does not answer."""
    if not rows:
        return []
    pool = ThreadPoolExecutor(min(_AT_ONCE, len(rows)))
    futures = [pool.submit(_look_at, row) for row in rows]
    wait(futures, timeout=LOOK_S * (1 + len(rows) // _AT_ONCE) + 0.5)
    pool.shutdown(wait=False, cancel_futures=True)
    return [_outcome(future) for future in futures]


def _look_at(row: Cluster) -> Look:
    try:
        client = member_clients.client(row, timeout_s=LOOK_S)
    except MemberDenied as e:
        return Look(False, False, health.CREDENTIALS_UNREADABLE, e.message[:500])
    return look(client)


def _outcome(future: Future[Look]) -> Look:
    if future.done() and not future.cancelled():
        return future.result()
    return Look(False, False, "ClusterNotReachable", f"no complete answer within {LOOK_S:g} s")


def _judge(rows: Sequence[Cluster], looks: Sequence[Look], now: datetime) -> list[Health]:
    """Where each member stands; those that fail together for a cause that is likely ours are spared.

    A member that only now fails for the whole grace is spared on suspicion, counting those that have just begun to fail. One
    that is tainted already is spared only when the others have failed as long: a lost look elsewhere restarts no toleration.
    """
    grace = timedelta(seconds=settings.CONVOY_MEMBERS.heartbeat_grace_s)
    were = [_health(row) for row in rows]
    are = [health.after(was, look, now, grace) for was, look in zip(were, looks, strict=True)]
    failing = {row.name: (h.failing_since, h.state) for row, h in zip(rows, are, strict=True) if h.failing_since}
    window = timedelta(seconds=settings.CONVOY_MEMBERS.disruption_window_s)
    limits = disruption.Limits(settings.CONVOY_MEMBERS.disruption_share, window)
    suspected = disruption.find({name: since for name, (since, _) in failing.items()}, len(rows), limits)
    lasting = {name: since for name, (since, state) in failing.items() if state is not State.READY}
    confirmed = disruption.find(lasting, len(rows), limits)
    judged = []
    for row, was, is_now in zip(rows, were, are, strict=True):
        common = (confirmed if was.evicts else suspected).get(row.name)
        judged.append(health.spared(is_now, common) if common and is_now.evicts else is_now)
    return judged


def _health(row: Cluster) -> Health:
    return Health(State(row.state), row.state_reason, row.state_message, row.state_since, row.failing_since)


def _write(row: Cluster, found: Look, is_now: Health, now: datetime) -> None:
    was = _health(row)
    times: dict[str, datetime | str | None] = {
        "failing_since": is_now.failing_since,
        "looked_at": now,
        "state_raw": found.raw,
    }
    if found.answered:
        times["last_heartbeat"] = now
    if (is_now.state, is_now.reason) == (was.state, was.reason) and health.taints(
        row.taints, is_now, now
    ) == row.taints:
        Cluster.objects.filter(pk=row.pk).update(**times)
    else:
        with transaction.atomic():
            _move(row, is_now, times, now)


def _move(seen: Cluster, is_now: Health, times: dict[str, datetime | str | None], now: datetime) -> None:
    same = Cluster.objects.filter(pk=seen.pk, state=seen.state, state_reason=seen.state_reason)
    row = same.select_for_update(no_key=True).first()
    if row is None:
        return
    row.state, row.state_reason, row.state_message = is_now.state.value, is_now.reason, is_now.message
    row.state_since = is_now.since
    row.taints = health.taints(row.taints, is_now, now)
    for field, value in times.items():
        setattr(row, field, value)
    fields = ["state", "state_reason", "state_message", "state_since", "taints", *times]
    clusters.announce(row, fields, now)
    warning = is_now.state is not State.READY
    events.record(clusters.change(row), is_now.reason, is_now.message, now, warning=warning)
    write = log.warning if warning else log.info
    write("cluster state", cluster=row.name, state=row.state, reason=is_now.reason, message=is_now.message)


def _is_stale(row: Cluster, now: datetime) -> bool:
    return row.discovered_at is None or abs(now - row.discovered_at) >= timedelta(
        seconds=settings.CONVOY_MEMBERS.discovery_interval_s
    )


def _discoveries(rows: list[Cluster]) -> list[tuple[Cluster, Findings]]:
    if not rows:
        return []
    pool = ThreadPoolExecutor(min(_AT_ONCE, len(rows)))
    asked = {row.pk: pool.submit(partial(_ask, member_clients.access_of(row), row.apis)) for row in rows}
    wait(asked.values(), timeout=ASK_S)
    pool.shutdown(wait=False, cancel_futures=True)
    done = [(row, asked[row.pk]) for row in rows if asked[row.pk].done() and not asked[row.pk].cancelled()]
    return [(row, findings) for row, future in done if (findings := future.result()) is not None]


def _ask(access: Access, before: discovery.Apis) -> Findings | None:
    try:
        client = member_clients.connect(access, timeout_s=LOOK_S)
        try:
            return member_facts.ask(client, before)
        finally:
            client.close()
    except MemberError as e:
        log.info("discovery failed", server=access.server, error=str(e))
        return None


def _take(seen: Cluster, findings: Findings, now: datetime) -> None:
    with transaction.atomic():
        row = Cluster.objects.select_for_update(no_key=True).filter(pk=seen.pk).first()
        if row is None or row.access != seen.access:
            return
        differ = clusters.take(row, findings, now)
        if differ:
            clusters.announce(row, differ, now)
            told = f"The cluster is {findings.version} and serves {sum(map(len, findings.apis.values()))} kinds"
            events.record(clusters.change(row), "ClusterChanged", told, now)
