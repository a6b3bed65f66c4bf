"""The rate at which jobs may leave one tainted cluster: a judgement that was wrong is noticed before everything has moved."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Q

from fleet import events
from fleet.models import Cluster
from fleet.services import clusters
from jobs.models import EvictionWindow

_WINDOW = timedelta(minutes=1)


def allow(cluster: Cluster, now: datetime) -> bool:
    """Takes one eviction from the cluster's budget; False when this minute's is used up, and an event says so once."""
    limit = settings.CONVOY_FAILOVER.evictions_per_minute
    mine = EvictionWindow.objects.filter(cluster=cluster)
    over = Q(ends_at__lte=now) | Q(ends_at__gt=now + _WINDOW)
    if mine.exclude(over).filter(count__lt=limit).update(count=F("count") + 1):
        return True
    if mine.filter(over).update(ends_at=now + _WINDOW, count=1):
        return True
    _, created = EvictionWindow.objects.get_or_create(cluster=cluster, defaults={"ends_at": now + _WINDOW, "count": 1})
    if not created and mine.filter(count=limit).update(count=F("count") + 1):
        message = (
            f"{limit} jobs have left within a minute; the others follow at that rate (CONVOY_EVICTIONS_PER_MINUTE)"
        )
        events.record(clusters.change(cluster), "EvictionsLimited", message, now, warning=True)
    return created
