"""Keeps readings of GPUs: the last of each node, and a value for each minute, in one transaction for a cluster."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import transaction

from fleet.core import gpu_readings
from fleet.core.gpu_readings import Reading
from fleet.db import bulk
from fleet.models import Cluster, GpuHour, NodeReading

HOUR = 3600
STALE = 3
"""Intervals after which the last reading says nothing of now."""
_AT_ONCE = 500


def freshness() -> timedelta:
    """How old a reading may be that still counts."""
    return STALE * timedelta(seconds=settings.CONVOY_GPUS.interval_s or HOUR / STALE)


@transaction.atomic
def store(cluster: Cluster, readings: Mapping[str, list[Reading]], now: datetime) -> None:
    """``readings`` by node, just taken."""
    nodes = sorted(readings)
    for start in range(0, len(nodes), _AT_ONCE):
        _store(cluster, {node: readings[node] for node in nodes[start : start + _AT_ONCE]}, now)


def _store(cluster: Cluster, readings: Mapping[str, list[Reading]], now: datetime) -> None:
    known = NodeReading.objects.filter(cluster=cluster, node__in=readings, at__gte=now - freshness(), at__lte=now)
    before = {row.node: gpu_readings.loaded(row.gpus) for row in known}
    rows = []
    for node, gpus in readings.items():
        each = gpu_readings.carry_idle(gpus, before.get(node, ()), now, threshold=settings.CONVOY_GPUS.idle_percent)
        rows.append(_row(cluster, node, each, now))
    bulk.upsert(rows, ("cluster", "node"), ("at", "gpus", "measured", "utilization", "idle_since"))
    _store_minute(cluster, readings, now)


def _row(cluster: Cluster, node: str, readings: list[Reading], now: datetime) -> NodeReading:
    values = [each.utilization for each in readings if each.utilization is not None]
    idle = [datetime.fromisoformat(each.idle_since) for each in readings if each.idle_since]
    return NodeReading(
        cluster=cluster,
        node=node,
        at=now,
        gpus=gpu_readings.stored(readings),
        measured=len(values),
        utilization=sum(values),
        idle_since=min(idle, default=None),
    )


def _store_minute(cluster: Cluster, readings: Mapping[str, list[Reading]], now: datetime) -> None:
    hour = int(now.timestamp()) // HOUR * HOUR
    minute = str(now.astimezone(UTC).minute)
    hours = {row.node: row for row in GpuHour.objects.filter(cluster=cluster, node__in=readings, hour=hour)}
    rows = []
    for node, gpus in readings.items():
        row = hours.get(node) or GpuHour(cluster=cluster, node=node, hour=hour, minutes={})
        for each in gpus:
            if each.utilization is not None:
                row.minutes.setdefault(each.gpu, {})[minute] = round(each.utilization)
        # A GPU index that an exporter makes up anew each minute would let the row grow without end.
        row.minutes = dict(list(row.minutes.items())[: gpu_readings.MOST_GPUS])
        rows.append(row)
    bulk.upsert(rows, ("cluster", "node", "hour"), ("minutes",))


def forget_readings(now: datetime) -> None:
    """Deletes what is older than its retention."""
    oldest = now - timedelta(seconds=settings.CONVOY_GPUS.keep_s)
    GpuHour.objects.filter(hour__lt=int(oldest.timestamp()) - HOUR).delete()
    NodeReading.objects.filter(at__lt=oldest).delete()
