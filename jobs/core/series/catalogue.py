"""Which values are kept over time, and of what: the closed list that recording, reading and REST share."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

FINE, MINUTE, HOUR = 10, 60, 3600
"""Seconds of one bucket at each step. A bucket is named by its beginning, in seconds since the epoch."""
STEPS = (FINE, MINUTE, HOUR)


class Metric(StrEnum):
    USED = "used"
    HELD = "held"
    CAPACITY = "capacity"
    REQUESTED = "requested"
    UNREACHABLE = "unreachable"
    FREE = "free"
    UTILIZATION = "utilization"
    CHARGED = "charged"
    BORROWED = "borrowed"
    LENT = "lent"
    MIN = "min"
    MAX = "max"
    WAITING = "waiting"
    STARTS = "starts"
    ENDS = "ends"
    PREEMPTIONS = "preemptions"
    FAILOVERS = "failovers"


class Dimension(StrEnum):
    FLEET = "fleet"
    CLUSTER = "cluster"
    MODEL = "model"
    QUEUE = "queue"
    TEAM = "team"


class Key(NamedTuple):
    """One series: of the cluster, GPU model, path of the quota tree, or namespace of this name; of the fleet, empty."""

    metric: Metric
    dimension: Dimension
    name: str = ""


COUNTS = frozenset({Metric.STARTS, Metric.ENDS, Metric.PREEMPTIONS, Metric.FAILOVERS})
"""Happenings within a bucket, which add up; everything else is a mean over the bucket."""
_OF_RUNS = frozenset({Metric.USED, Metric.HELD, *COUNTS})
_OF_NODES = frozenset({Metric.CAPACITY, Metric.FREE})
_OF_REACH = frozenset({Metric.REQUESTED, Metric.UNREACHABLE, Metric.UTILIZATION})
"""With capacity and free: what pods ask for on nodes that can be used, what nodes of clusters that are not ready have, and how
much (percent) the GPUs compute whose exporters are read."""
_OF_QUOTA = frozenset({Metric.CHARGED, Metric.BORROWED, Metric.LENT, Metric.MIN, Metric.MAX})

KEPT: Mapping[Dimension, frozenset[Metric]] = {
    Dimension.FLEET: _OF_RUNS | _OF_NODES | _OF_REACH | {Metric.WAITING},
    Dimension.CLUSTER: _OF_RUNS | _OF_NODES | _OF_REACH,
    Dimension.MODEL: _OF_NODES | {Metric.USED},
    Dimension.QUEUE: _OF_RUNS | _OF_QUOTA | {Metric.WAITING},
    Dimension.TEAM: _OF_RUNS | {Metric.WAITING},
}


def is_recountable(key: Key) -> bool:
    """Whether it is counted from the runs of jobs, also for a time in which nothing recorded it; others are sampled."""
    return key.metric in _OF_RUNS and key.dimension is not Dimension.MODEL


def absent(key: Key) -> float | None:
    """The value of a series that has no point: zero where nothing was counted, unknown where nothing was sampled."""
    return 0.0 if is_recountable(key) or key.metric is Metric.WAITING else None


def floor(at: float, step: int) -> int:
    """The beginning of the bucket that a moment is in."""
    return int(at // step) * step
