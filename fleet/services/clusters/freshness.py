"""Marks members whose stored state is stale: watchers confirm that it is current, the heartbeat finds the unconfirmed ones.

A stale member keeps its jobs and gets no new ones, and nothing is decided about later times (`fleet.core.members.freshness`).
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, When

from fleet.changes import events
from fleet.core.members import health
from fleet.core.members.freshness import HEARTBEAT_GAP
from fleet.db import isolation, prepared
from fleet.db.prepared import TIME, Param
from fleet.models import Cluster
from fleet.services.clusters import clusters

_INITIAL_WATCH_GRACE = timedelta(seconds=60)
"""How long a member that answers, but cannot be watched, delays decisions about all members."""


@transaction.atomic
def confirm(cluster_ids: Collection[int], now: datetime) -> None:
    """Records that everything these members reported is written; rows that are being changed wait for the next call."""
    rows = Cluster.objects.filter(pk__in=cluster_ids).order_by("pk").select_for_update(no_key=True, skip_locked=True)
    # A beginning that is yet to come is of a clock that was wrong: until then nothing would count as observed.
    unbroken = When(watched_until__gte=now - _longest_age(), watched_since__lte=now, then=F("watched_since"))
    free = Cluster.objects.filter(pk__in=list(rows.values_list("pk", flat=True)))
    free.update(watched_since=Case(unbroken, default=now), watched_until=now)


def resume(now: datetime) -> None:
    """After a downtime of Convoy, restarts what is counted of members that failed before it: they were not observed meanwhile.

    That is the grace of those that are still Ready, and the toleration of those that are lost.
    """
    failing = ~Q(taints=[]) | Q(failing_since__isnull=False)
    unobserved = Cluster.objects.filter(failing, looked_at__lt=now - HEARTBEAT_GAP)
    isolation.each("freshness.resume", unobserved.values_list("pk", flat=True), lambda pk: _restart_count(pk, now), now)


@transaction.atomic
def _restart_count(pk: int, now: datetime) -> None:
    row = Cluster.objects.select_for_update(no_key=True).filter(pk=pk).first()
    if row is None or row.is_heartbeat_recent(now):
        return
    row.looked_at = now
    if row.state == Cluster.State.READY:
        row.failing_since = None
    row.taints = [{**t, "timeAdded": now.isoformat()} if t["key"] in health.KEYS else t for t in row.taints]
    clusters.announce(row, ["taints", "looked_at", "failing_since"], now)


def review(now: datetime) -> None:
    """Marks members whose state has become stale, or is current again."""
    changed = [pk for (pk,) in _CHANGED.values(oldest=now - _longest_age())]
    isolation.each("freshness.review", changed, lambda pk: _mark(pk, now), now)


def _changed(param: Param) -> QuerySet[Cluster, Any]:
    """Members whose ``stale_since`` differs from what their freshness requires."""
    old = Q(watched_until__lt=param("oldest", TIME))
    rows = Cluster.objects.filter((old & Q(stale_since=None)) | (~old & Q(stale_since__isnull=False)))
    return rows.values_list("pk")


_CHANGED: prepared.Rows[Cluster] = prepared.Rows(_changed)


@transaction.atomic
def _mark(pk: int, now: datetime) -> None:
    row = Cluster.objects.select_for_update(no_key=True).filter(pk=pk).first()
    if row is None or row.freshness.is_stale(now, _longest_age()) == (row.stale_since is not None):
        return
    row.stale_since = row.watched_until if row.stale_since is None else None
    clusters.announce(row, ["stale_since"], now)
    if row.stale_since:
        events.record(clusters.change(row), "PictureStale", row.freshness_message, now, warning=True)
    else:
        events.record(clusters.change(row), "PictureCurrent", row.freshness_message, now)
        clusters.freed(pk)


def unobserved(now: datetime) -> list[str]:
    """Ready members not observed since the last gap in watching; empty a minute after watching began again.

    What they run may be newer than the database, which may have been restored from a backup meanwhile.
    """
    rows = _WATCHED.values()
    began = min((since for _, since, until in rows if now - until <= _longest_age()), default=None)
    if began is None or now - began > _INITIAL_WATCH_GRACE:
        return []
    return [name for name, _, until in rows if now - until > _longest_age() and until < began]


def _watched(_: Param) -> QuerySet[Cluster, Any]:
    ready = Cluster.objects.filter(state=Cluster.State.READY, watched_since__isnull=False, watched_until__isnull=False)
    return ready.order_by("name").values_list("name", "watched_since", "watched_until")


_WATCHED: prepared.Rows[Cluster] = prepared.Rows(_watched)


def predates_gap(cluster: Cluster, decided_at: datetime, now: datetime) -> bool:
    """Whether a decision about the member was taken before a gap in watching, and what happened since is not known yet."""
    since, until = cluster.watched_since, cluster.watched_until
    if since is None or until is None:
        return False
    if now - until > _longest_age():
        return decided_at <= until
    return decided_at < since and bool(unobserved(now))


def _longest_age() -> timedelta:
    return timedelta(seconds=settings.CONVOY_MEMBERS.picture_max_age_s)
