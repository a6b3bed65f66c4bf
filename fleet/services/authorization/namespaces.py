"""Namespaces as persons make them: a row with annotations. What is in a namespace is its own kind's business.

What creates something in a namespace calls `keep_open` first, so that no deletion begins between its look at the mark and its
commit: what a deletion does not find when it has begun is never created.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any
from zlib import crc32

from django.db import connection, transaction
from django.db.models import Q, QuerySet

from fleet.changes import dry_runs, events, journal
from fleet.db import clock, prepared
from fleet.db.prepared import TIME, Param
from fleet.models import Namespace

_LOCKS = 0x6E616D65
"""Class of the advisory locks of namespaces."""


def keep_open(names: Collection[str]) -> None:
    """Until the transaction ends, no deletion of these namespaces begins; call it before any row is locked.

    On SQLite no other transaction writes meanwhile. A dry run creates nothing that a deletion could miss; a deletion that
    waited for it would keep every submission behind it waiting as well.
    """
    if connection.vendor == "postgresql" and not dry_runs.is_running():
        _lock("pg_advisory_xact_lock_shared", names)


def _lock(function: str, names: Collection[str]) -> None:
    # In one order. Two names with the same key only wait for each other.
    keys = sorted({crc32(name.encode()) - 2**31 for name in names})
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s, key) FROM unnest(%s::int[]) AS key", [_LOCKS, keys])  # noqa: S608


@transaction.atomic
def save(name: str, annotations: Mapping[str, str], *, now: datetime) -> None:
    """Creates the namespace, or replaces its annotations."""
    defaults: dict[str, Any] = {"annotations": dict(annotations)}
    row, is_new = Namespace.objects.update_or_create(
        name=name, defaults=defaults, create_defaults={**defaults, "created_at": now}
    )
    [version] = events.announce([_change(row, journal.Action.ADDED if is_new else journal.Action.MODIFIED)], now)
    Namespace.objects.filter(pk=row.pk).update(resource_version=version)


@transaction.atomic
def create(name: str, annotations: Mapping[str, str], *, now: datetime) -> None:
    """Creates a namespace that is not there. The row of a deleted one may be left: the new one is another."""
    for row in Namespace.objects.select_for_update(no_key=True).filter(name=name, deleting_at__isnull=False):
        _remove(row, now)
    save(name, annotations, now=now)


@transaction.atomic
def terminate(name: str, *, now: datetime) -> None:
    """From now on nothing is created in it. The row goes with the last of its objects, or when something is created later.

    What was being created is there once it returns.
    """
    if connection.vendor == "postgresql":
        _lock("pg_advisory_xact_lock", [name])
    about = {"deleting_at": now}
    row, _ = Namespace.objects.update_or_create(
        name=name, defaults=about, create_defaults={**about, "annotations": {}, "created_at": now}
    )
    events.announce([_change(row, journal.Action.MODIFIED)], now)


def terminating(names: Collection[str]) -> list[str]:
    return list(Namespace.objects.filter(name__in=names, deleting_at__isnull=False).values_list("name", flat=True))


def terminating_for(least: timedelta, now: datetime) -> list[str]:
    """Those whose deletion began so long ago, or at a time that is yet to come: before the clock was set back."""
    return [name for (name,) in _TERMINATING.values(before=now - least, after=now + clock.STEP)]


def _terminating(param: Param) -> QuerySet[Namespace, Any]:
    began = Q(deleting_at__lt=param("before", TIME)) | Q(deleting_at__gt=param("after", TIME))
    return Namespace.objects.filter(began).order_by("deleting_at").values_list("name")


_TERMINATING = prepared.Rows(_terminating)


@transaction.atomic
def remove(name: str, *, now: datetime) -> None:
    """Forgets that it was created: it is there for as long as something is in it."""
    for row in Namespace.objects.select_for_update(no_key=True).filter(name=name):
        _remove(row, now)


def _remove(row: Namespace, now: datetime) -> None:
    Namespace.objects.filter(pk=row.pk).delete()
    events.announce([_change(row, journal.Action.DELETED)], now)


def _change(row: Namespace, action: journal.Action) -> journal.Change:
    """In itself, so that those who may read this namespace alone are sent the change."""
    return journal.Change("Namespace", row.name, row.name, str(row.uid), action)
