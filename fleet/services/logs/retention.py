"""Keeps the archive of logs within its age and its size.

Beyond the size, the oldest pods of the namespace that has most are deleted first: one team that prints much cannot push the
logs of all others out.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet, Sum

from fleet.models import EndedPod
from fleet.services.logs import reading, recording, storing

_AT_ONCE = 500
_BATCHES = 100
_LEFT = "the cluster left the fleet before the log was read"


def tidy(now: datetime) -> None:
    recording.settle_unread(EndedPod.objects.filter(cluster=None), _LEFT)
    oldest_kept = now - timedelta(seconds=settings.CONVOY_LOGS.keep_s)
    for _ in range(_BATCHES):
        if _delete(EndedPod.objects.filter(ended_at__lt=oldest_kept)) < _AT_ONCE:
            break
    _shrink(settings.CONVOY_LOGS.total_bytes)


def _shrink(most: int) -> None:
    sizes = dict(EndedPod.objects.order_by().values_list("namespace").annotate(size=Sum("stored_bytes")))
    total = sum(sizes.values())
    for _ in range(_BATCHES):
        if total <= most:
            return
        largest = max(sizes, key=sizes.__getitem__)
        others = sorted(sizes.values())[-2] if len(sizes) > 1 else 0
        freed = _delete_oldest(largest, min(total - most, max(sizes[largest] - others, 1)))
        if not freed:
            return
        sizes[largest] -= freed
        total -= freed


def _delete_oldest(namespace: str, size: int) -> int:
    """Deletes the oldest pods that together have the size; returns how much that was."""
    pods, freed = [], 0
    for pod in EndedPod.objects.filter(namespace=namespace)[:_AT_ONCE]:
        if freed >= size:
            break
        pods.append(pod.pk)
        freed += pod.stored_bytes
    _delete(EndedPod.objects.filter(pk__in=pods))
    return freed


def _delete(pods: QuerySet[EndedPod]) -> int:
    batch = list(pods[:_AT_ONCE])
    for pod in batch:
        storing.delete_all(pod, reading.possible_numbers(pod))
    with transaction.atomic():
        EndedPod.objects.filter(pk__in=[pod.pk for pod in batch]).delete()
    return len(batch)
