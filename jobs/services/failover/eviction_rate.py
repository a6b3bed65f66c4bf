"""The rate at which jobs may leave one tainted cluster: a judgement that was wrong is noticed before everything has moved."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Q, QuerySet

from fleet.changes import events
from fleet.models import Cluster
from fleet.services.clusters import clusters
from jobs.models import EvictionWindow

_WINDOW = timedelta(minutes=1)


def allow(cluster: Cluster, now: datetime, count: int = 1) -> int:
    """Takes so many evictions from the cluster's budget of this minute, or what is left of it; returns how many.

    An event says once that the budget is used up.
    """
    limit = settings.CONVOY_FAILOVER.evictions_per_minute
    window, _ = EvictionWindow.objects.get_or_create(cluster=cluster, defaults={"ends_at": now + _WINDOW, "count": 0})
    own_window = EvictionWindow.objects.filter(pk=window.pk)
    own_window.filter(Q(ends_at__lte=now) | Q(ends_at__gt=now + _WINDOW)).update(ends_at=now + _WINDOW, count=0)
    taken = _take(own_window, count, limit)
    if taken < count and own_window.filter(count=limit).update(count=F("count") + 1):
        message = (
            f"{limit} jobs have left within a minute; the others follow at that rate (CONVOY_EVICTIONS_PER_MINUTE)"
        )
        events.record(clusters.change(cluster), "EvictionsLimited", message, now, warning=True)
    return taken


def _take(window: QuerySet[EvictionWindow], count: int, limit: int) -> int:
    """By conditional updates, as another process may take from the same window."""
    while taken := min(count, max(limit - (used := window.values_list("count", flat=True).get()), 0)):
        if window.filter(count=used).update(count=used + taken):
            return taken
    return 0
