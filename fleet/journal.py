"""The one list of changes: every change of an object appends (version, object) in the transaction that makes it.

Readers follow it by version. On PostgreSQL a transaction-long advisory lock orders writers, because a sequence alone gives
numbers in allocation order while rows appear in commit order, and a reader in between would skip one. On SQLite writers
are serial already.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from django.db import connection
from django.db.models import BigIntegerField, Max, Min, Model, QuerySet

from fleet import bulk
from fleet.models import JournalEntry

_LOCK = 0x636F6E76
_NO_LATER = BigIntegerField.MAX_BIGINT
"""Excludes nothing. But where PostgreSQL has no statistics yet it takes a third of the journal to be later than any version,
and reads all of it each time; between two bounds it expects a few lines, and looks them up."""

Action = JournalEntry.Action


@dataclass(frozen=True, slots=True)
class Change:
    kind: str
    namespace: str
    name: str
    uid: str
    action: JournalEntry.Action
    group: str = ""
    made: Model | None = field(default=None, compare=False, repr=False)
    """The object, if it is new: what the audit shows of it."""


class Entry(NamedTuple):
    """A line as it is read."""

    version: int
    kind: str
    group: str
    namespace: str
    name: str
    object_uid: str
    action: str
    at: datetime


def append(changes: Iterable[Change], now: datetime) -> Sequence[int]:
    """Writes the changes and returns their versions, ascending; call inside the transaction of the change itself."""
    rows = [
        {
            "kind": c.kind,
            "group": c.group,
            "namespace": c.namespace,
            "name": c.name,
            "object_uid": c.uid,
            "action": c.action.value,
            "at": now,
        }
        for c in changes
    ]
    if not rows:
        return []
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
    return bulk.store(JournalEntry, rows)


def head() -> int:
    """The newest version; 0 when nothing ever changed."""
    return JournalEntry.objects.aggregate(newest=Max("version"))["newest"] or 0


def newest(*, but: Collection[str] = ()) -> Entry | None:
    """The newest line, except for these kinds."""
    return next(iter(_read("-version", 1, but)), None)


def floor() -> int:
    """The oldest version a reader may still continue after."""
    return (JournalEntry.objects.aggregate(oldest=Min("version"))["oldest"] or 1) - 1


def after(version: int, limit: int = 1000, *, but: Collection[str] = ()) -> list[Entry]:
    """What changed after ``version``, oldest first, except for these kinds."""
    return _read("version", limit, but, version__gt=version, version__lte=_NO_LATER)


def _read(order: str, limit: int, but: Collection[str], **only: int) -> list[Entry]:
    rows = JournalEntry.objects.filter(**only).order_by(order).values_list(*Entry._fields)
    return [Entry(*row) for row in (rows.exclude(kind__in=but) if but else rows)[:limit]]


def gone() -> QuerySet[JournalEntry, str]:
    """The uids of what was deleted, as far as is remembered."""
    return JournalEntry.objects.filter(action=Action.DELETED).order_by().values_list("object_uid", flat=True)


def compact(keep: int) -> int:
    """Forgets all but the newest ``keep`` entries; the newest one always stays, so that versions never go back."""
    deleted, _ = JournalEntry.objects.filter(version__lte=head() - max(keep, 1)).delete()
    return deleted
