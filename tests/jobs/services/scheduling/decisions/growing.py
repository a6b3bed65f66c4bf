"""Elastic jobs that run and lose workers to a reclaim, as rows."""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from jobs.core.resizing.elastic import ELASTIC
from jobs.models import Attempt, Job
from jobs.services.lifecycle import sizes
from jobs.services.submission.changes import resizing as changes
from tests.jobs.services import resizing
from tests.jobs.services.resizing import bind
from tests.support import books
from tests.support.books import GPU

YES = {ELASTIC: "true"}


def running(name: str, workers: int, **fields: Any) -> Job:
    """It started an hour ago, within 10 s."""
    books.apply(resizing.elastic(name, workers, queue="a", **{"annotations": YES, **fields}))
    job = resizing.runs(name)
    long_ago = timezone.now() - timedelta(hours=1)
    Attempt.objects.filter(job=job).update(placed_at=long_ago - timedelta(seconds=10), started_at=long_ago, sizes=None)
    return job


def loses(name: str, left: int, now: datetime, *, free: int) -> None:
    """So many of its workers are left after a reclaim, and so many GPUs are free beside them."""
    with transaction.atomic():
        job = Job.objects.select_related("cluster").select_for_update(of=("self",)).get(name=name)
        former = sizes.asked_for(job)
        for wanted in ({"worker": left}, former):
            changes.request(job, wanted, by="the reclaim of n1", now=now, returns_lost=True)
    has_free(name, free)


def has_free(name: str, free: int) -> None:
    cluster = books.job(name).cluster
    assert cluster is not None
    node = cluster.nodes.get(name="node")
    in_use = sum(role["replicas"] for job in Job.objects.exclude(state=Job.State.QUEUED) for role in job.roles)
    node.allocatable = {**node.allocatable, GPU: in_use + free}
    node.save()
    bind(name)


def wanted(name: str) -> int | None:
    resize = books.job(name).resize
    return resize and resize["sizes"]["worker"]
