"""The heartbeat: asks every member at once whether it is well, and writes down what is different.

Members are asked in parallel, one request each, and each has two seconds, so that a slow one delays no other. An answer that
changes nothing costs no journal entry, and those of all such members are written by one statement.
"""

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from structlog import get_logger

from fleet.changes import events
from fleet.core.members import disruption, health
from fleet.core.members.health import Health, Look, State
from fleet.db import isolation
from fleet.member.client import MemberClient
from fleet.member.errors import MemberDenied, MemberError, MemberMissing
from fleet.models import Cluster
from fleet.services.clusters import clusters, freshness
from fleet.services.members import member_clients

log = get_logger(__name__)

_AT_ONCE = 128
_HEALTH_PATHS = ("/readyz", "/healthz", "/version")
"""In order of preference. A Kubernetes API server answers 401 at each of them when it refuses our credentials."""
_REFUSED = (
    "The cluster refuses the credentials, so its jobs run on unseen and none is moved; renew them without detaching it"
)
_served_paths: dict[str, str] = {}
"""The path at which each server answered last, so that one request is enough the next time."""


def check_all(now: datetime) -> None:
    """Asks every member once. A cluster whose state is different is announced, with taints to match."""
    freshness.resume(now)
    rows, looks = _seen(list(Cluster.objects.all()))
    unchanged: dict[tuple[tuple[str, Any], ...], list[Cluster]] = defaultdict(list)
    for row, look, is_now in zip(rows, looks, _judge(rows, looks, now), strict=True):
        times = _times(look, is_now, now)
        if _is_unchanged(row, is_now, now):
            unchanged[tuple(times.items())].append(row)
        else:
            isolation.run("clusters.move", [row.name], partial(_move, row, is_now, times, now))
    for times_of_all, as_before in unchanged.items():
        _write_times(as_before, dict(times_of_all))
    freshness.review(now)


def probe_member(client: MemberClient) -> Look:
    """Asks the member how it is, at the path where it answered the last time; at the others when it no longer serves that."""
    server = client.access.server
    try:
        for path in sorted(_HEALTH_PATHS, key=lambda path: path != _served_paths.get(server)):
            if _is_served(client, path):
                _served_paths[server] = path
                return Look(answered=True, healthy=True)
    except MemberDenied as e:
        return Look(True, False, health.CREDENTIALS_REFUSED, f"{_REFUSED}: {e.message}"[:500])
    except MemberError as e:
        if e.status:
            return Look(True, False, "ClusterNotHealthy", f"The cluster says it is not well: {e.message}"[:500])
        return Look(False, False, "ClusterNotReachable", e.message[:500], e.raw[:500])
    return Look(True, False, "ClusterNotHealthy", "The server does not answer like a Kubernetes API server.")


def _is_served(client: MemberClient, path: str) -> bool:
    """False when the member does not serve this path, or not to us. Raises when it is not well or refuses the credentials."""
    try:
        client.get_text(path)
    except MemberMissing:
        return False
    except MemberDenied as e:
        if e.status == 403:
            return False
        raise
    return True


def _seen(rows: list[Cluster]) -> tuple[list[Cluster], list[Look]]:
    """The members, each with what a look at it found. One whose look failed by an error of ours is left as it was."""
    pairs = [(row, look) for row, look in zip(rows, _looks(rows), strict=True) if look is not None]
    return [row for row, _ in pairs], [look for _, look in pairs]


def _looks(rows: list[Cluster]) -> list[Look | None]:
    """One look each. A member that has not answered when the time is up does not answer."""
    if not rows:
        return []
    pool = ThreadPoolExecutor(min(_AT_ONCE, len(rows)))
    futures = [pool.submit(_look_at, row) for row in rows]
    wait(futures, timeout=settings.CONVOY_MEMBERS.probe_timeout_s * (1 + (len(rows) - 1) // _AT_ONCE) + 0.5)
    pool.shutdown(wait=False, cancel_futures=True)
    return [_outcome(row, future) for row, future in zip(rows, futures, strict=True)]


def _look_at(row: Cluster) -> Look:
    try:
        client = member_clients.client(row, timeout_s=settings.CONVOY_MEMBERS.probe_timeout_s)
    except MemberDenied as e:
        return Look(False, False, health.CREDENTIALS_UNREADABLE, e.message[:500])
    return probe_member(client)


def _outcome(row: Cluster, future: Future[Look]) -> Look | None:
    if future.done() and not future.cancelled():
        result = isolation.run("clusters.look", [row.name], future.result, savepoint=False)
        return result[0] if result else None
    return Look(
        False, False, "ClusterNotReachable", f"no complete answer within {settings.CONVOY_MEMBERS.probe_timeout_s:g} s"
    )


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


def _times(look: Look, is_now: Health, now: datetime) -> dict[str, Any]:
    times = {"failing_since": is_now.failing_since, "looked_at": now, "state_raw": look.raw}
    return times | ({"last_heartbeat": now} if look.answered else {})


def _is_unchanged(row: Cluster, is_now: Health, now: datetime) -> bool:
    was = _health(row)
    same_state = (is_now.state, is_now.reason) == (was.state, was.reason)
    return same_state and health.taints(row.taints, is_now, now) == row.taints


@transaction.atomic
def _write_times(seen: Sequence[Cluster], times: dict[str, Any]) -> None:
    """Of those that have not been looked at since: a process may have been paused between its look and this."""
    looked_at = {row.pk: row.looked_at for row in seen}
    # Locked in one order first: an UPDATE of many rows locks them in any order, and could wait for one that waits for it.
    rows = Cluster.objects.filter(pk__in=looked_at).order_by("pk").select_for_update(no_key=True)
    pks = [pk for pk, at in rows.values_list("pk", "looked_at") if at == looked_at[pk]]
    Cluster.objects.filter(pk__in=pks).update(**times)


@transaction.atomic
def _move(seen: Cluster, is_now: Health, times: dict[str, Any], now: datetime) -> None:
    same = Cluster.objects.filter(pk=seen.pk, state=seen.state, state_reason=seen.state_reason)
    row = same.filter(looked_at=seen.looked_at).select_for_update(no_key=True).first()
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
