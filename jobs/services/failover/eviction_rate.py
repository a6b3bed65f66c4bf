"""Limits how many jobs leave a tainted cluster per minute, so that a wrong judgement is noticed before all jobs have moved."""

import re
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Q, QuerySet

from fleet.changes import events
from fleet.models import Cluster
from fleet.services.clusters import clusters
from jobs.models import EvictionWindow

PER_MINUTE = "convoy.dev/evictions-per-minute"
"""Label of a cluster that jobs leave at another pace than by the setting; what is no positive number counts for nothing."""
_PACE = re.compile(r"[1-9][0-9]{0,8}")
_WINDOW = timedelta(minutes=1)


def limit_of(cluster: Cluster) -> int:
    """How many jobs may leave the cluster within a minute."""
    pace = str(cluster.labels.get(PER_MINUTE, ""))
    return int(pace) if _PACE.fullmatch(pace) else settings.CONVOY_FAILOVER.evictions_per_minute


def allow(cluster: Cluster, now: datetime, count: int = 1) -> int:
    """Takes up to ``count`` evictions from the cluster's budget of the current minute, and returns how many it got.

    When the budget is used up, an event is recorded once.
    """
    limit = limit_of(cluster)
    window, _ = EvictionWindow.objects.get_or_create(cluster=cluster, defaults={"ends_at": now + _WINDOW, "count": 0})
    own_window = EvictionWindow.objects.filter(pk=window.pk)
    own_window.filter(Q(ends_at__lte=now) | Q(ends_at__gt=now + _WINDOW)).update(ends_at=now + _WINDOW, count=0)
    taken = _take(own_window, count, limit)
    if taken < count and own_window.filter(count=limit).update(count=F("count") + 1):
        message = f"{limit} jobs have left within a minute ({_source(cluster)}): the others follow later"
        events.record(clusters.change(cluster), "EvictionsLimited", message, now, warning=True)
    return taken


def why_later(cluster: Cluster, now: datetime) -> str:
    """Why a job that is to leave the cluster has not left; empty: the rate allows it now."""
    limit = limit_of(cluster)
    window = EvictionWindow.objects.filter(
        cluster=cluster, count__gte=limit, ends_at__gt=now, ends_at__lte=now + _WINDOW
    ).first()
    if window is None:
        return ""
    jobs = f"{limit} job{'s' * (limit > 1)}"
    return f"the next leave at {window.ends_at:%H:%M:%S} UTC, since {jobs} a minute may leave {cluster} ({_source(cluster)})"


def _source(cluster: Cluster) -> str:
    return f"label {PER_MINUTE}" if PER_MINUTE in cluster.labels else "CONVOY_EVICTIONS_PER_MINUTE"


def _take(window: QuerySet[EvictionWindow], count: int, limit: int) -> int:
    """Takes from the window by conditional updates, because other processes may do so at the same time."""
    while taken := min(count, max(limit - (used := window.values_list("count", flat=True).get()), 0)):
        if window.filter(count=used).update(count=used + taken):
            return taken
    return 0
