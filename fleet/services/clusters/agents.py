"""Renews the fleet's Lease in every member that answers, and keeps what the agents there answer (`fleet.core.members.fence`).

A member without an agent has no Lease to renew: it is looked for once a minute. A worker claims a member by moving
`MemberAgent.due_at`; with that it writes until when the renewal may let copies run, before it is sent. A member that does
not answer its heartbeat is sent none. Each member is asked in a thread of its own.
"""

import threading
import time
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q
from structlog import get_logger

from fleet.changes import events
from fleet.core.members import fence
from fleet.core.members.fence import Renewals
from fleet.core.members.health import State
from fleet.kube.resources import LEASES
from fleet.member.client import Object
from fleet.member.errors import MemberDenied, MemberError, MemberMissing
from fleet.models import Cluster, Identity, MemberAgent
from fleet.services.clusters import clusters
from fleet.services.members import member_clients

log = get_logger(__name__)

SEARCH = timedelta(seconds=60)
"""Between two looks for a Lease in a member that has none."""
_REQUEST_S = 5.0
_LATE_S = 5.0
"""A renewal that has not been sent for so long is given up: it would let copies run longer than was written."""
_AT_ONCE = 16
_SLOTS = threading.BoundedSemaphore(_AT_ONCE)
_WRITING = threading.Lock()
"""One result is written at a time, so that all threads together need one database connection."""
_PATH = LEASES.path(fence.NAMESPACE, fence.NAME)


class _Late(Exception):
    """The thread was paused between the claim and the request."""


def start(now: datetime) -> list[threading.Thread]:
    """Begins to renew the Leases that are due, as many as there are free threads; does not wait for the members."""
    unknown = Cluster.objects.filter(agent=None).only("pk")
    MemberAgent.objects.bulk_create((MemberAgent(cluster=row) for row in unknown), ignore_conflicts=True)
    due = Q(due_at=None) | Q(due_at__lte=now) | Q(due_at__gt=now + 2 * max(SEARCH, _interval()))
    rows = MemberAgent.objects.filter(due, cluster__state=State.READY, cluster__failing_since=None)
    threads = []
    for row in rows.select_related("cluster").order_by(F("due_at").asc(nulls_first=True), "pk")[:_AT_ONCE]:
        if not _SLOTS.acquire(blocking=False):
            break
        was_there = row.is_answered
        if not _claim(row, now):
            _SLOTS.release()
            continue
        about = (row, was_there, _spec(now), now, time.monotonic())
        thread = threading.Thread(target=_renew, args=about, name=f"lease {row.cluster.name}", daemon=True)
        thread.start()
        threads.append(thread)
    return threads


def of(cluster: Cluster) -> Renewals | None:
    """What is known of the Lease in the member; None: none was ever renewed there."""
    row = MemberAgent.objects.filter(cluster_id=cluster.pk).first()
    return row.renewals if row is not None else None


def _claim(row: MemberAgent, now: datetime) -> bool:
    """Writes what the renewal will mean before it is sent. False when another worker was faster."""
    duration = timedelta(seconds=settings.CONVOY_MEMBERS.fence_s)
    mine = MemberAgent.objects.filter(pk=row.pk, due_at=row.due_at)
    row.due_at = now + (_interval() if row.seen_at is not None else SEARCH)
    row.until = max(row.until or now, now + duration)
    row.renewed_at, row.duration_s = now, settings.CONVOY_MEMBERS.fence_s
    fields = ("due_at", "until", "renewed_at", "duration_s")
    return bool(mine.update(**{field: getattr(row, field) for field in fields}))


def _renew(row: MemberAgent, was_there: bool, spec: Object, now: datetime, claimed_at: float) -> None:
    """Uses the database only to write: a thread that gives up before that has no connection to give back."""

    def check() -> None:
        if time.monotonic() - claimed_at > _LATE_S:
            raise _Late

    try:
        lease, message = None, ""
        try:
            client = member_clients.client(row.cluster, timeout_s=_REQUEST_S).fenced(check, lambda: None)
            lease = client.merge_patch(_PATH, {"spec": spec})
        except MemberMissing:
            message = "there is no agent in the cluster"
        except MemberDenied as e:
            message = f"the fleet's account may not renew the Lease {fence.NAMESPACE}/{fence.NAME}: {e.message}"[:300]
        except (MemberError, _Late) as e:
            log.warning("lease not renewed", cluster=row.cluster.name, error=str(e))
            return
        with _WRITING:
            try:
                _write(row, was_there, lease, message, now)
            finally:
                connection.close()
    finally:
        _SLOTS.release()


def _spec(now: datetime) -> Object:
    return {
        "holderIdentity": f"convoy-{Identity.here()}",
        "leaseDurationSeconds": int(settings.CONVOY_MEMBERS.fence_s),
        "renewTime": now.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
    }


@transaction.atomic
def _write(row: MemberAgent, was_there: bool, lease: Object | None, message: str, now: datetime) -> None:
    """Of an answer that comes late, when the Lease was renewed again, nothing is kept."""
    seen_at = _seen(lease, now) if lease is not None else None
    row.seen_at = seen_at or (row.seen_at if lease is not None else None)
    row.message = message
    if lease is not None:
        row.due_at = now + _interval()
    mine = MemberAgent.objects.filter(pk=row.pk, renewed_at=now)
    if mine.update(seen_at=row.seen_at, message=message, due_at=row.due_at):
        _announce(row, was_there, now)


def _announce(row: MemberAgent, was_there: bool, now: datetime) -> None:
    """In the cluster's timeline, when an agent has come or is gone."""
    is_there = row.is_answered
    if is_there == was_there:
        return
    cluster = Cluster.objects.select_for_update(no_key=True).filter(pk=row.cluster_id).first()
    if cluster is None:
        return
    message = (
        f"An agent in the cluster stops jobs of policies with Fence when the fleet is silent for {row.duration_s} s"
        if is_there
        else row.message or "the agent in the cluster does not answer renewals of its Lease"
    )
    clusters.announce(cluster, [], now)
    events.record(
        clusters.change(cluster), "AgentAnswers" if is_there else "AgentSilent", message, now, warning=was_there
    )


def _seen(lease: Object, now: datetime) -> datetime | None:
    """The renewal that the agent has answered; None: none, or one that the fleet cannot have sent."""
    text = ((lease.get("metadata") or {}).get("annotations") or {}).get(fence.SEEN)
    try:
        seen = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return seen if seen.tzinfo is not None and seen <= now else None


def _interval() -> timedelta:
    return timedelta(seconds=settings.CONVOY_MEMBERS.fence_s / fence.RENEWALS)
