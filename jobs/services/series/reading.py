"""Reads values over time for one reader: which series are asked for, which of them they may see, and every bucket of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from fleet.changes import journal
from fleet.errors import FieldFault, InvalidInput, invalid
from jobs.core.series.catalogue import FINE, HOUR, KEPT, MINUTE, STEPS, Dimension, Metric, floor
from jobs.core.series.downsampling import Value, expand
from jobs.models import Series, SeriesProgress
from jobs.services.series import points, recording

MOST_BUCKETS = 1500
"""Of one series, in one answer."""
MOST_VALUES = 30_000
"""Of all series of one answer."""
MOST_METRICS = 8


@dataclass(frozen=True, slots=True)
class Query:
    metrics: tuple[Metric, ...]
    by: Dimension
    name: str | None
    """None: of every name."""
    begin: int
    end: int
    step: int


@dataclass(frozen=True, slots=True)
class Values:
    metric: Metric
    name: str
    values: list[Value]


@dataclass(frozen=True, slots=True)
class Answer:
    query: Query
    series: list[Values]
    is_cut: bool
    """Whether there are more names than one answer may have."""


def ask(metric: str, by: str, name: str | None, begin: datetime, end: datetime, step: str) -> Query:
    """Raises `InvalidInput` with one fault for each field that makes no sense."""
    faults: list[FieldFault] = []
    if by not in KEPT:
        raise invalid("by", f"must be one of {', '.join(Dimension)}")
    dimension = Dimension(by)
    names = list(dict.fromkeys(metric.split(",")))
    wrong = [each for each in names if each not in KEPT[dimension]]
    if wrong or len(names) > MOST_METRICS:
        known = ", ".join(sorted(KEPT[dimension]))
        faults.append(FieldFault("metric", f"must be 1 to {MOST_METRICS} of {known}, separated by commas, by {by}"))
    if step and step not in map(str, STEPS):
        faults.append(FieldFault("step", f"must be one of {', '.join(map(str, STEPS))}, in seconds"))
    if begin >= end:
        faults.append(FieldFault("from", "must be before to"))
    if faults:
        raise InvalidInput("; ".join(f"{fault.field}: {fault.detail}" for fault in faults), tuple(faults))
    seconds = int(step) if step else _finest(begin, end)
    first, last = floor(begin.timestamp(), seconds), -floor(-end.timestamp(), seconds)
    if (last - first) // seconds > MOST_BUCKETS:
        most = f"more than {MOST_BUCKETS} values of each series: choose a longer step, or a later from"
        raise invalid("step", most)
    return Query(tuple(Metric(each) for each in names), dimension, name, first, last, seconds)


def _finest(begin: datetime, end: datetime) -> int:
    """The finest step in which the time is not too many buckets."""
    seconds = (end - begin).total_seconds()
    return next((step for step in (FINE, MINUTE) if seconds <= step * (MOST_BUCKETS - 2)), HOUR)


def read(query: Query, names: Iterable[str] | None, now: datetime) -> Answer:
    """In four queries. ``names`` are those that the reader may see, None: all."""
    rows = Series.objects.filter(dimension=query.by, metric__in=query.metrics)
    if query.name is not None:
        rows = rows.filter(name=query.name)
    if names is not None:
        rows = rows.filter(name__in=list(names))
    most = max(1, MOST_VALUES // ((query.end - query.begin) // query.step))
    progress, version = SeriesProgress.objects.first(), journal.tip()
    shown = rows.order_by("name", "metric")[: most + 1]
    stored = {} if progress is None else points.read(shown, query.step, query.begin, query.end)
    keys = sorted(stored, key=lambda key: (key.name, query.metrics.index(key.metric)))
    series = [
        Values(key.metric, key.name, _known(query, stored[key], progress, version, now))
        for key in keys[:most]
        if progress is not None
    ]
    return Answer(query, series, is_cut=len(keys) > most)


def _known(
    query: Query, stored: tuple[int, Value, dict[int, Value]], progress: SeriesProgress, version: int, now: datetime
) -> list[Value]:
    """Every bucket; null before the first record, beyond the last, and beyond the retention."""
    _, before, changes = stored
    keep = settings.CONVOY_SERIES
    kept_s, until = {
        FINE: (keep.fine_s, recording.recorded_until(progress, version, now.timestamp())),
        MINUTE: (keep.minute_s, progress.minute),
        HOUR: (keep.hour_s, progress.hour),
    }[query.step]
    since = max(progress.begun, now.timestamp() - kept_s)
    buckets = range(query.begin, query.end, query.step)
    values = expand(changes, before, query.begin, query.end, query.step)
    return [
        value if since <= at and at + query.step <= until else None for at, value in zip(buckets, values, strict=True)
    ]
