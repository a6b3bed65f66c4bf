"""Publishes a change: to the journal with it, to websockets and task queues once it is committed.

A service calls `announce` in the same function, and the same transaction, that changes the state. What is lost on the way
(a broker that is down, a process that dies after the commit) is found again by the sweeps.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import uuid4

from celery import current_app
from channels.layers import InMemoryChannelLayer, get_channel_layer
from django.db import transaction
from django.db.models import F
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from fleet.changes import audit_context, background_sender, journal
from fleet.db import bulk
from fleet.models import Event
from fleet.models.event import event_name, event_space

log = logging.getLogger(__name__)

LONGEST_COUNTDOWN_S = 60.0
"""Well below the broker's visibility timeout; the sweeps, which run every 2 s, find what is due later."""
CHANGES_GROUP = "changes"
"""The channel-layer group every open websocket listens to."""


def announce(changes: Sequence[journal.Change], now: datetime, said: Sequence["Line"] = ()) -> Sequence[int]:
    """Journals the changes and, on commit, notifies the websockets; returns the new resource versions.

    ``said`` are lines of timelines that cannot have been said before: added with the changes, in the same few statements.
    """
    if not changes:
        return []
    versions = journal.append([*changes, *_record_lines(said, now)], now)[: len(changes)]
    audit_context.changed(changes, now)
    if has_layer():
        push = partial(_push, list(zip(changes, versions, strict=True)))
        transaction.on_commit(partial(background_sender.send, push), robust=True)
    return versions


def enqueue(task: str, *args: object, countdown_s: float = 0.0) -> None:
    """Sends a task by name once the transaction commits. A broker that is away costs nothing but time: sweeps follow.

    A task due later than `LONGEST_COUNTDOWN_S` is left to the sweeps, which find it in the rows: a broker delivers a task again
    that it has kept for longer than its visibility timeout, every time anew.
    """
    if countdown_s > LONGEST_COUNTDOWN_S:
        return
    transaction.on_commit(partial(background_sender.send, partial(_send, task, args, countdown_s)), robust=True)


@dataclass(frozen=True, slots=True)
class Line:
    """Of an object's timeline."""

    regarding: journal.Change
    reason: str
    message: str
    warning: bool = False
    source: str = "convoy"

    def event(self, now: datetime) -> dict[str, Any]:
        """What the row says."""
        return {
            "uid": uuid4(),
            "regarding_kind": self.regarding.kind,
            "regarding_namespace": self.regarding.namespace,
            "regarding_name": self.regarding.name,
            "regarding_uid": self.regarding.uid,
            "type": (Event.Type.WARNING if self.warning else Event.Type.NORMAL).value,
            "reason": self.reason,
            "message": self.message[:1024],
            "source": self.source,
            "first_at": now,
            "last_at": now,
        }


def record(
    regarding: journal.Change,
    reason: str,
    message: str,
    now: datetime,
    *,
    warning: bool = False,
    source: str = "convoy",
) -> None:
    """Adds a line to an object's timeline; the same line again only counts."""
    record_all([Line(regarding, reason, message, warning, source)], now)


@transaction.atomic(savepoint=False)
def record_all(lines: Iterable[Line], now: datetime) -> None:
    """Adds many lines at once; those that were said before only count."""
    events = {_event_key(event): event for event in (Event(**line.event(now)) for line in lines)}
    uids, reasons = sorted({event.regarding_uid for event in events.values()}), {key[2] for key in events}
    before = [
        event
        for start in range(0, len(uids), 500)
        for event in Event.objects.filter(regarding_uid__in=uids[start : start + 500], reason__in=reasons)
        if events.pop(_event_key(event), None)
    ]
    Event.objects.filter(pk__in=[event.pk for event in before]).update(count=F("count") + 1, last_at=now)
    _journal(before, journal.Action.MODIFIED, now)
    inserted = bulk.insert(list(events.values()))
    _journal(inserted, journal.Action.ADDED, now)


def _event_key(event: Event) -> tuple[str, ...]:
    """What makes two lines the same."""
    return event.regarding_uid, event.type, event.reason, event.message, event.source


def _record_lines(lines: Iterable[Line], now: datetime) -> list[journal.Change]:
    """Adds lines; what is to be journalled of them."""
    rows = [line.event(now) for line in lines]
    stored, added = zip(rows, bulk.store(Event, rows), strict=True), journal.Action.ADDED
    return [
        journal.Change(
            "Event", event_space(e["regarding_namespace"]), event_name(e["regarding_name"], pk), str(e["uid"]), added
        )
        for e, pk in stored
    ]


def forget_old(before: datetime, now: datetime) -> None:
    """Deletes the lines that were not repeated since, in batches of a transaction each."""
    for _ in range(_BATCHES):
        if _forget_some(before, now) < _AT_ONCE:
            return


@transaction.atomic(savepoint=False)
def _forget_some(before: datetime, now: datetime) -> int:
    old = list(Event.objects.filter(last_at__lt=before).order_by("last_at")[:_AT_ONCE])
    Event.objects.filter(pk__in=[each.pk for each in old]).delete()
    _journal(old, journal.Action.DELETED, now)
    return len(old)


_AT_ONCE = 1000
_BATCHES = 100
"""Of one call: more than comes in the minute until the next one, and less than would hold that up."""


def _journal(said: Iterable[Event], action: journal.Action, now: datetime) -> None:
    """For watches; websockets hear of the object itself."""
    changes = [journal.Change("Event", e.object_namespace, e.object_name, str(e.uid), action) for e in said]
    journal.append(changes, now)


def has_layer() -> bool:
    """Whether websockets hear by the channel layer: one in memory ends with its process, so they follow the journal."""
    layer = get_channel_layer()
    return layer is not None and not isinstance(layer, InMemoryChannelLayer)


async def _push(changes: Iterable[tuple[journal.Change, int]]) -> None:
    body = [
        {
            "kind": change.kind,
            "namespace": change.namespace,
            "name": change.name,
            "id": change.uid,
            "action": change.action.value,
            "version": version,
        }
        for change, version in changes
    ]
    layer: Any = get_channel_layer()
    message = {"type": "changes", "changes": body}
    try:
        try:
            await layer.group_send(CHANGES_GROUP, message)
        except RedisError:  # the connection may have ended since the last message: the next one is new
            await layer.group_send(CHANGES_GROUP, message)
    except (OSError, RedisError) as e:
        log.warning("websockets were not notified of %d changes: %s", len(body), e)


def _send(task: str, args: tuple[object, ...], countdown_s: float) -> None:
    try:
        current_app.send_task(task, args=args, countdown=countdown_s or None, retry=False)
    except (OSError, OperationalError) as e:
        log.warning("%s was not enqueued (a sweep will find the work): %s", task, e)
