"""The attempts of a queue's or a cluster's jobs within a time, the latest first, as far as one reader may see them.

Of a deleted job no name is kept: its attempts count in GPU-hours, and are not listed here.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce

from fleet.errors import invalid
from jobs.models import Attempt

LONGEST = timedelta(days=31)
MOST = 200


def between(
    begin: datetime, end: datetime, namespaces: Collection[str] | None, *, cluster: str = "", queue: str = ""
) -> tuple[list[dict[str, Any]], bool]:
    """Those that touch the time, and whether there are more. ``namespaces`` are those the reader may see, None: all."""
    if begin >= end:
        raise invalid("from", "must be before to")
    if end - begin > LONGEST:
        raise invalid("from", f"must be at most {LONGEST.days} days before to")
    rows: QuerySet[Attempt] = Attempt.objects.filter(Q(ended_at=None) | Q(ended_at__gte=begin), placed_at__lt=end)
    if namespaces is not None:
        rows = rows.filter(job__namespace__in=list(namespaces))
    if cluster:
        rows = rows.filter(cluster_name=cluster)
    if queue:
        rows = rows.filter(Q(job__leaf=queue) | Q(job__leaf__startswith=f"{queue}/"))
    named = rows.annotate(
        job_id_=F("job__uid"),
        namespace=F("job__namespace"),
        name=F("job__name"),
        all_gpus=Coalesce("gpus", "job__gpus"),
    )
    listed = named.order_by("-placed_at", "-pk").values(
        "job_id_",
        "namespace",
        "name",
        "number",
        "cluster_name",
        "placed_at",
        "started_at",
        "ended_at",
        "outcome",
        "all_gpus",
    )[: MOST + 1]
    attempts: list[dict[str, Any]] = [dict(row) for row in listed]
    return attempts[:MOST], len(attempts) > MOST
