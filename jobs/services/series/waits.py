"""How long jobs waited before their placements in a time, by queue, team, GPU model or reason, and step by step.

The spans are those of accounting. A wait that began before the time counts whole.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import chain

from jobs.core.explain import waits
from jobs.core.explain.accounting import Span
from jobs.core.explain.waits import Named, Percentiles, Wait
from jobs.services.lifecycle.accounting import usage_spans
from jobs.services.series import periods

LONGEST = timedelta(days=92)
MOST_SPANS = 300_000
"""Counted for one answer: they are in memory at once."""
_STEPS = ((timedelta(days=2), 3600), (timedelta(days=14), 6 * 3600))
_DAY_S = 86_400


class Owner(StrEnum):
    QUEUE = "queue"
    TEAM = "team"
    MODEL = "model"
    REASON = "reason"


_NAMES: dict[Owner, Callable[[Wait], Named]] = {
    Owner.QUEUE: lambda wait: [(wait.last.leaf, wait.length)],
    Owner.TEAM: lambda wait: [(wait.last.namespace, wait.length)],
    Owner.MODEL: lambda wait: [(wait.placed.model, wait.length)] if wait.placed else [],
    Owner.REASON: lambda wait: wait.reasons.items(),
}


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    whole: Percentiles | None
    """Of the whole time; None: no wait has ended in it."""
    trend: Sequence[Percentiles | None]
    """Of each step."""
    waiting: int
    """Jobs that wait yet at the end of the time."""
    longest: int
    """Milliseconds that the first of them has waited."""


@dataclass(frozen=True, slots=True)
class Report:
    begin: int
    """Of the first step, in seconds since the epoch."""
    step: int
    """Seconds."""
    rows: Sequence[Row]
    """Those with the most waiting first."""


def step_of(length: timedelta) -> int:
    """Seconds of one step of a time."""
    return next((seconds for most, seconds in _STEPS if length <= most), _DAY_S)


def read(by: Owner, begin: datetime, end: datetime, now: datetime, namespaces: Collection[str] | None) -> Report:
    """``namespaces`` are those the reader may see, None: all."""
    periods.check(begin, end, LONGEST)
    until = min(end, now)
    step = step_of(end - begin)
    first = int(begin.timestamp()) // step * step
    bounds = periods.milliseconds(begin), periods.milliseconds(until)
    ended, open_waits = [], []
    for wait in waits.waits(_spans(begin, until, now, namespaces), bounds[1]):
        if wait.placed is None:
            open_waits.append(wait)
        elif bounds[0] <= wait.at < bounds[1]:
            ended.append(wait)
    count = max(1, -(-(bounds[1] - first * 1000) // (step * 1000)))
    lengths = waits.collect(ended, first * 1000, step * 1000, count, _NAMES[by])
    waiting = waits.collect(open_waits, 0, bounds[1] * 2 + 1, 1, _NAMES[by])
    rows = [_row(name, lengths.get(name, []), waiting.get(name, [[]])[0], count) for name in {*lengths, *waiting}]
    totals = {name: sum(map(sum, of)) for name, of in lengths.items()}
    return Report(first, step, sorted(rows, key=lambda row: (-totals.get(row.name, 0), -row.longest, row.name)))


def _row(name: str, lengths: Sequence[Sequence[int]], waiting: Sequence[int], count: int) -> Row:
    trend = [waits.percentiles(of) for of in lengths] or [None] * count
    return Row(name, waits.percentiles([*chain(*lengths)]), trend, len(waiting), max(waiting, default=0))


def _spans(begin: datetime, until: datetime, now: datetime, namespaces: Collection[str] | None) -> Iterator[Span]:
    """Those of the time, and of waits that began before it what came before."""
    spans = list(periods.bounded(usage_spans.between(begin, until, now, namespaces), MOST_SPANS, "spans"))
    yield from spans
    start = periods.milliseconds(begin)
    jobs = {span.job for span in spans if span.begin == start or (span.number == 0 and span.begin < start)}
    yield from usage_spans.appended_before(sorted(jobs), begin)
