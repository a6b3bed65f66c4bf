"""How long jobs waited for a place, from the spans of accounting: each wait counts once, when a placement ends it. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from jobs.core.explain.accounting import UNKNOWN, Span
from jobs.core.explain.timeline import Owner


@dataclass(frozen=True, slots=True)
class Wait:
    """Of one job, before one placement. Times are milliseconds, ``at`` is since the epoch."""

    at: int
    length: int
    """Without the time in which a user had suspended it."""
    placed: Span | None
    """The first span of the attempt that it ended with; None: the job waits yet."""
    last: Span
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Milliseconds by the code of the job's reason."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    count: int
    p50: int
    p95: int


def waits(spans: Iterable[Span], until: int) -> Iterator[Wait]:
    """Of all jobs of which there are spans, as of ``until``; of those that still wait then the wait so far."""
    ordered = sorted((span for span in spans if span.begin < until), key=lambda span: (span.job, span.begin, span.end))
    for _, of_job in groupby(ordered, key=lambda span: span.job):
        yield from _of_job(of_job, until)


def _of_job(spans: Iterable[Span], until: int) -> Iterator[Wait]:
    length, number = 0, 0
    reasons: dict[str, int] = defaultdict(int)
    last: Span | None = None
    for span in spans:
        last = span
        if span.number == 0:
            if span.kind != Owner.SUSPENDED:
                length += min(span.end, until) - span.begin
                reasons[span.reason or UNKNOWN] += min(span.end, until) - span.begin
        elif span.number != number:
            yield Wait(span.begin, length, span, span, dict(reasons))
            number, length, reasons = span.number, 0, defaultdict(int)
    if last is not None and length and last.number == 0 and last.end >= until:
        yield Wait(until, length, None, last, dict(reasons))


Named = Iterable[tuple[str, int]]
"""Names that a wait counts for, and how long for each."""


def collect(
    ended: Iterable[Wait], begin: int, step: int, count: int, named: Callable[[Wait], Named]
) -> dict[str, list[list[int]]]:
    """By name, the waits that ended in each of ``count`` steps from ``begin`` on."""
    lengths: dict[str, list[list[int]]] = defaultdict(lambda: [[] for _ in range(count)])
    for wait in ended:
        place = (wait.at - begin) // step
        for name, length in named(wait) if 0 <= place < count else ():
            lengths[name][place].append(length)
    return dict(lengths)


def percentiles(lengths: Sequence[int]) -> Percentiles | None:
    """By nearest rank: a value that occurred; None: there were no waits."""
    if not lengths:
        return None
    ordered = sorted(lengths)
    return Percentiles(len(ordered), ordered[_rank(50, ordered)], ordered[_rank(95, ordered)])


def _rank(percent: int, ordered: Sequence[int]) -> int:
    return -(-percent * len(ordered) // 100) - 1
