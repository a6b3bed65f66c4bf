"""The one list of changes: every change of an object appends (version, object) in the transaction that makes it.

Readers follow it by version. On PostgreSQL a sequence gives versions in allocation order while rows appear in commit order, so
a reader that took every row it sees would skip the version of a slower writer. No writer waits for another one: each holds,
until its transaction ends, a shared advisory lock whose key is the version the sequence had reached when it began, and readers
stop short of the oldest such key. On SQLite writers are serial already.
"""

import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import BigIntegerField, Max, Model, QuerySet

from fleet.changes import dry_runs
from fleet.db import bulk, prepared
from fleet.db.prepared import KEY, TEXT
from fleet.models import JournalEntry

_WRITERS = 0x636F6E76
"""Class of the advisory locks of writers; the key is the low half of a version."""
_HALF = 2**32
_SEQUENCE = "fleet_journalentry_version_seq"
_POLL_S = 0.002
_NO_LATER = BigIntegerField.MAX_BIGINT
"""Excludes nothing. But where PostgreSQL has no statistics yet it takes a third of the journal to be later than any version,
and reads all of it each time; between two bounds it expects a few lines, and looks them up."""

Action = JournalEntry.Action


class Compacted(Exception):
    """Lines that a reader has not read are gone: it has to read everything anew."""


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


@transaction.atomic(savepoint=False)
def append(changes: Iterable[Change], now: datetime) -> Sequence[int]:
    """Writes the changes and returns their versions, ascending; call inside the transaction of the change itself.

    Those of a dry run will never be there: readers do not wait for them.
    """
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
    if connection.vendor == "postgresql" and not dry_runs.is_running():
        _register_writer()
    return bulk.store(JournalEntry, rows)


def _register_writer() -> None:
    """Once a transaction, before it allocates a version. The setting is undone with the lock when a savepoint is."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock_shared(%s, (last_value & 4294967295)::bit(32)::int),"  # noqa: S608
            " set_config('convoy.journal_writer', '1', true)"
            f" FROM {_SEQUENCE} WHERE current_setting('convoy.journal_writer', true) IS DISTINCT FROM '1'",
            [_WRITERS],
        )


def settled(wait_s: float = 0.0) -> int:
    """The version up to which every entry that will ever be there is there; waits as long for those being written now.

    Ask before reading the rows: a snapshot older than the answer may lack the entries of a writer that has ended since.
    """
    if connection.vendor != "postgresql":
        return _NO_LATER
    if (until := getattr(_moment, "until", None)) is not None:
        return int(until)
    reached, deadline = _reached(), time.monotonic() + wait_s
    while (open_until := _open_until(reached)) < reached and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return open_until


@contextmanager
def read_until(version: int) -> Iterator[None]:
    """What is settled for readers of this thread: one snapshot serves them all, and is not older than this."""
    _moment.until = version
    try:
        yield
    finally:
        _moment.until = None


_moment = threading.local()


def _reached() -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT last_value FROM {_SEQUENCE}")  # noqa: S608
        return int(cursor.fetchone()[0])


def _open_until(reached: int) -> int:
    """The oldest version at which another transaction that still writes began; ``reached`` when there is none."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND classid = %s"
            " AND pid <> pg_backend_pid()"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            [_WRITERS],
        )
        behind = [(reached - key) % _HALF for (key,) in cursor.fetchall()]
    return reached - max((each for each in behind if each < _HALF // 2), default=0)


def tip() -> int:
    """The newest version anybody can have seen, though older ones may still be on their way; 0 when nothing ever changed."""
    with connection.cursor() as cursor:  # asked for all the time, by readers that have nothing to read
        cursor.execute(f"SELECT max(version) FROM {JournalEntry._meta.db_table}")  # noqa: S608
        return int(cursor.fetchone()[0] or 0)


def head() -> int:
    """The newest version to go on from; 0 when nothing ever changed."""
    return JournalEntry.objects.filter(version__lte=settled()).aggregate(newest=Max("version"))["newest"] or 0


def newest(*, but: Collection[str] = ()) -> Entry | None:
    """The newest line, except for these kinds."""
    return next(iter(_read_entries("-version", 1, but, above=-1, until=settled())), None)


def changes_of(kind: str, version: int) -> tuple[int, int]:
    """The newest version after ``version``, and how many changes of the kind there are up to it; both 0 where nothing changed.

    Raises `Compacted` when lines after ``version`` may be gone. For readers that follow one kind of many: one statement.
    """
    until = settled()
    with connection.cursor() as cursor:
        table = JournalEntry._meta.db_table
        cursor.execute(
            f"SELECT max(version), sum(CASE WHEN kind = %s THEN 1 ELSE 0 END), (SELECT min(version) FROM {table})"  # noqa: S608
            f" FROM {table} WHERE version > %s AND version <= %s",
            [kind, version, until],
        )
        newest, count, oldest = cursor.fetchone()
    if version < (oldest or 1) - 1:
        raise Compacted
    return int(newest or 0), int(count or 0)


def floor() -> int:
    """The oldest version a reader may still continue after."""
    with connection.cursor() as cursor:  # as `tip`
        cursor.execute(f"SELECT min(version) FROM {JournalEntry._meta.db_table}")  # noqa: S608
        return int(cursor.fetchone()[0] or 1) - 1


def after(version: int, limit: int = 1000, *, but: Collection[str] = ()) -> list[Entry]:
    """What changed after ``version``, oldest first, except for these kinds; up to what is settled."""
    return _read_entries("version", limit, but, above=version, until=settled())


def _read_entries(order: str, limit: int, but: Collection[str], *, above: int, until: int) -> list[Entry]:
    return [Entry(*row) for row in _entries(order, limit).values(above=above, until=until, but=[*but])]


@lru_cache(maxsize=16)
def _entries(order: str, limit: int) -> prepared.Rows[JournalEntry]:
    def build(param: prepared.Param) -> "QuerySet[JournalEntry, Any]":
        rows = JournalEntry.objects.filter(version__gt=param("above", KEY), version__lte=param("until", KEY))
        rows = rows.exclude(kind__in=param("but", TEXT)) if param("but", TEXT) else rows
        return rows.order_by(order).values_list(*Entry._fields)[:limit]

    return prepared.Rows(build)


def gone() -> QuerySet[JournalEntry, str]:
    """The uids of what was deleted, as far as is remembered."""
    return JournalEntry.objects.filter(action=Action.DELETED).order_by().values_list("object_uid", flat=True)


def added_after(version: int, uids: Collection[str]) -> set[str]:
    """Those of the uids whose objects are newer than ``version``."""
    added = JournalEntry.objects.filter(version__gt=version, action=Action.ADDED, object_uid__in=uids)
    return set(added.order_by().values_list("object_uid", flat=True))


def compact(keep: int) -> int:
    """Forgets all but the newest ``keep`` entries; the newest one always stays, so that versions never go back.

    The oldest go first, in batches: after a pause of the housekeeping one statement would delete for minutes.
    """
    last, deleted = tip() - max(keep, 1), 0
    old = JournalEntry.objects.filter(version__lte=last).order_by("version").values_list("version", flat=True)
    while (first := old.first()) is not None:
        deleted += JournalEntry.objects.filter(version__lte=min(first + COMPACTED_AT_ONCE - 1, last)).delete()[0]
    return deleted


COMPACTED_AT_ONCE = 10_000
