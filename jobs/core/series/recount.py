"""Counts GPUs and happenings per bucket from the runs of jobs, exactly: in whole milliseconds until the last division."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jobs.core.series.catalogue import FINE, Dimension, Key, Metric

Changes = Sequence[tuple[int, float]]
"""``(bucket, value)`` where the value differs from that of the bucket before; the first bucket of the time is there always."""
_BUCKET_MS = FINE * 1000


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt of a job. Times are milliseconds since the epoch."""

    cluster: str
    leaf: str
    namespace: str
    gpus: int
    placed: int
    started: int | None
    ended: int | None
    preempted: bool = False
    failover: bool = False
    """Whether it was placed because the attempt before it had failed or was lost."""
    user: str = ""
    """The author of the job; empty: the product itself, or not recorded."""
    sizes: Sequence[Sequence[int]] = ()
    """``(until, gpus)`` of each size that it had before ``gpus``, which it has since the last of them."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class _Sums:
    """GPU-milliseconds of one series: whole buckets as steps of a level, parts of buckets by themselves."""

    def __init__(self) -> None:
        self._parts: dict[int, int] = defaultdict(int)
        self._steps: dict[int, int] = defaultdict(int)

    def add(self, amount: int, begin: int, end: int) -> None:
        first, last = begin // _BUCKET_MS, end // _BUCKET_MS
        if first == last:
            self._parts[first] += amount * (end - begin)
            return
        self._parts[first] += amount * ((first + 1) * _BUCKET_MS - begin)
        self._parts[last] += amount * (end - last * _BUCKET_MS)
        self._steps[first + 1] += amount
        self._steps[last] -= amount

    def count(self, at: int) -> None:
        """One happening: as much as a whole bucket of 1."""
        self._parts[at // _BUCKET_MS] += _BUCKET_MS

    def changes(self, begin: int, end: int) -> Changes:
        first, beyond = begin // FINE, end // FINE
        level, before = 0, None
        changes: list[tuple[int, float]] = []
        for each in sorted({first, *self._steps, *self._parts, *(part + 1 for part in self._parts)}):
            level += self._steps.get(each, 0)
            if each >= beyond:
                break
            value = level + self._parts.get(each, 0) / _BUCKET_MS
            if value != before:
                changes.append((each * FINE, value))
                before = value
        return changes


def recount(runs: Iterable[Run], begin: int, end: int) -> dict[Key, Changes]:
    """Of the buckets in ``[begin, end)``, seconds since the epoch and multiples of `FINE`."""
    sums: dict[Key, _Sums] = defaultdict(_Sums)
    for run in runs:
        owners = tuple(_owners(run))
        for metric, gpus, since, until in spans(run):
            least, most = max(since, begin * 1000), min(until, end * 1000)
            for dimension, name in owners if least < most and gpus else ():
                sums[Key(metric, dimension, name)].add(gpus, least, most)
        for metric, at in _happenings(run):
            for dimension, name in owners if begin * 1000 <= at < end * 1000 else ():
                sums[Key(metric, dimension, name)].count(at)
    return {key: each.changes(begin, end) for key, each in sums.items()}


def _owners(run: Run) -> Iterator[tuple[Dimension, str]]:
    yield Dimension.FLEET, ""
    yield Dimension.CLUSTER, run.cluster
    yield Dimension.TEAM, run.namespace
    path = run.leaf
    while path:
        yield Dimension.QUEUE, path
        path = path.rpartition("/")[0]


def spans(run: Run) -> Iterator[tuple[Metric, int, int, int]]:
    """How many of its GPUs were held, and used, from when until when."""
    ended = float("inf") if run.ended is None else run.ended
    started = ended if run.started is None else min(run.started, ended)
    for metric, since, until in (
        (Metric.HELD, run.placed, _whole(started)),
        (Metric.USED, _whole(started), _whole(ended)),
    ):
        for resized, gpus in run.sizes:
            if since < resized:
                yield metric, gpus, since, min(resized, until)
                since = min(resized, until)
        yield metric, run.gpus, since, until


def _whole(at: float) -> int:
    return int(min(at, 1 << 62))


def _happenings(run: Run) -> Iterator[tuple[Metric, int]]:
    if run.failover:
        yield Metric.FAILOVERS, run.placed
    if run.started is not None:
        yield Metric.STARTS, run.started
    if run.ended is not None:
        yield Metric.ENDS, run.ended
        if run.preempted:
            yield Metric.PREEMPTIONS, run.ended
