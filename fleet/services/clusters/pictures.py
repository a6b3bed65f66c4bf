"""Whose picture is current: watchers confirm theirs, and the heartbeat marks the members whose picture has grown old.

A stale member keeps its jobs, gets none, and nothing in it is judged later than its picture (`fleet.core.members.sight`).
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, When

from fleet.changes import events
from fleet.core.members import health
from fleet.core.members.sight import LOOKS_PAUSE
from fleet.db import isolation, prepared
from fleet.db.prepared import TIME, Param
from fleet.models import Cluster
from fleet.services.clusters import clusters

_FIRST_LOOK = timedelta(seconds=60)
"""How long a member that answers and cannot be watched delays what is decided about all."""


@transaction.atomic
def confirm(cluster_ids: Collection[int], now: datetime) -> None:
    """Everything these members have shown is written; passes over rows that are being changed, until the next time."""
    rows = Cluster.objects.filter(pk__in=cluster_ids).order_by("pk").select_for_update(no_key=True, skip_locked=True)
    unbroken = When(watched_until__gte=now - _most(), watched_since__isnull=False, then=F("watched_since"))
    free = Cluster.objects.filter(pk__in=list(rows.values_list("pk", flat=True)))
    free.update(watched_since=Case(unbroken, default=now), watched_until=now)


def resume(now: datetime) -> None:
    """After a pause of our own, a member that was lost before counts as lost from now on: it was not observed meanwhile."""
    unseen = Cluster.objects.exclude(taints=[]).filter(looked_at__lt=now - LOOKS_PAUSE)
    isolation.each("pictures.resume", unseen.values_list("pk", flat=True), lambda pk: _renew_taints(pk, now), now)


@transaction.atomic
def _renew_taints(pk: int, now: datetime) -> None:
    row = Cluster.objects.select_for_update(no_key=True).filter(pk=pk).first()
    if row is None or row.is_looked_at(now):
        return
    row.looked_at = now
    row.taints = [{**t, "timeAdded": now.isoformat()} if t["key"] in health.KEYS else t for t in row.taints]
    clusters.announce(row, ["taints", "looked_at"], now)


def review(now: datetime) -> None:
    """Marks members whose picture has become stale, or is current again."""
    turned = [pk for (pk,) in _TURNED.values(oldest=now - _most())]
    isolation.each("pictures.review", turned, lambda pk: _mark(pk, now), now)


def _turned(param: Param) -> QuerySet[Cluster, Any]:
    """Those whose mark is not what their picture asks for."""
    old = Q(watched_until__lt=param("oldest", TIME))
    rows = Cluster.objects.filter((old & Q(stale_since=None)) | (~old & Q(stale_since__isnull=False)))
    return rows.values_list("pk")


_TURNED: prepared.Rows[Cluster] = prepared.Rows(_turned)


@transaction.atomic
def _mark(pk: int, now: datetime) -> None:
    row = Cluster.objects.select_for_update(no_key=True).filter(pk=pk).first()
    if row is None or row.sight.is_stale(now, _most()) == (row.stale_since is not None):
        return
    row.stale_since = row.watched_until if row.stale_since is None else None
    clusters.announce(row, ["stale_since"], now)
    if row.stale_since:
        events.record(clusters.change(row), "PictureStale", row.picture_message, now, warning=True)
    else:
        events.record(clusters.change(row), "PictureCurrent", row.picture_message, now)
        clusters.freed(pk)


def unseen(now: datetime) -> list[str]:
    """Ready members not seen since the last gap in watching; empty a minute after watching began again.

    What they run may be newer than the database, which may have been restored from a backup meanwhile.
    """
    rows = _WATCHED.values()
    began = min((since for _, since, until in rows if now - until <= _most()), default=None)
    if began is None or now - began > _FIRST_LOOK:
        return []
    return [name for name, _, until in rows if now - until > _most() and until < began]


def _watched(_: Param) -> QuerySet[Cluster, Any]:
    ready = Cluster.objects.filter(state=Cluster.State.READY, watched_since__isnull=False, watched_until__isnull=False)
    return ready.order_by("name").values_list("name", "watched_since", "watched_until")


_WATCHED: prepared.Rows[Cluster] = prepared.Rows(_watched)


def is_overtaken(cluster: Cluster, decided_at: datetime, now: datetime) -> bool:
    """Whether a decision about the member was taken before a gap in watching, and what happened since is not known yet."""
    since, until = cluster.watched_since, cluster.watched_until
    if since is None or until is None:
        return False
    if now - until > _most():
        return decided_at <= until
    return decided_at < since and bool(unseen(now))


def _most() -> timedelta:
    return timedelta(seconds=settings.CONVOY_MEMBERS.picture_max_age_s)
