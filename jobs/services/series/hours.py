"""GPU-time over a time by team, user, queue, cluster or GPU model, from the attempts of jobs that one reader may see.

The attempts of deleted jobs count as long as the deleted jobs are remembered (``CONVOY_DELETED_JOBS_KEEP_S``).
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from jobs.core.series.hours import GpuTime, add_up
from jobs.core.series.recount import Run
from jobs.services.lifecycle.accounting import runs, usage_spans
from jobs.services.series import periods

LONGEST = timedelta(days=31)
MOST_RUNS = 200_000
"""Counted for one answer."""


class Owner(StrEnum):
    TEAM = "team"
    USER = "user"
    QUEUE = "queue"
    CLUSTER = "cluster"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Share:
    name: str
    time: GpuTime


def read(
    by: Owner,
    begin: datetime,
    end: datetime,
    now: datetime,
    namespaces: Collection[str] | None,
    most_runs: int = MOST_RUNS,
) -> list[Share]:
    """The largest first. ``namespaces`` are those whose jobs the reader may see, None: all. Raises `InvalidInput`."""
    periods.check(begin, end, LONGEST)
    begin_ms, end_ms = periods.milliseconds(begin), periods.milliseconds(min(end, now))
    seen = periods.bounded(runs.between(begin_ms // 1000, -(-end_ms // 1000), namespaces), most_runs, "attempts")
    times = add_up(seen, begin_ms, end_ms, _namer(by))
    return [Share(name, time) for name, time in sorted(times.items(), key=lambda each: (-each[1].total_ms, each[0]))]


def _namer(by: Owner) -> Callable[[Run], str]:
    match by:
        case Owner.TEAM:
            return lambda run: run.namespace
        case Owner.USER:
            return lambda run: run.user
        case Owner.QUEUE:
            return lambda run: run.leaf
        case Owner.CLUSTER:
            return lambda run: run.cluster
    models = usage_spans.models_of_clusters()
    return lambda run: models.get(run.cluster, "")
