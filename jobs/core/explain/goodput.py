"""What became of the time of jobs: productive, or what it was lost to, and which failure it is owed to. Exact. Pure.

The spans are those of accounting, so that there is one truth about when an attempt ran and until when its work was saved. A
failure costs what its attempt had not saved, the wait for the next place, and the start there.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby

from jobs.core.explain.accounting import SAVED, UNSAVED, Span, cuts_short
from jobs.core.explain.timeline import Owner
from jobs.core.failover.rules import Outcome


class Part(StrEnum):
    PRODUCTIVE = "productive"
    CHECKPOINT = "checkpoint"
    """Running, while the training waited for a checkpoint to be saved."""
    LOST = "lost"
    """Running, after the last save of an attempt that was cut short."""
    UNKNOWN = "unknown"
    """Running, in an attempt that was cut short and of which it is not known what it had saved."""
    HUNG = "hung"
    RESTART = "restart"
    """From the placement until all pods run."""
    WAITING = "waiting"
    """For quota, a place or a member. Time in which a user had suspended it is left out."""


RUNNING = (Part.PRODUCTIVE, Part.CHECKPOINT, Part.LOST, Part.UNKNOWN, Part.HUNG)
Key = tuple[str, int]
"""A job and the number of its attempt."""


@dataclass(frozen=True, slots=True)
class Stop:
    """What cut an attempt short."""

    category: str
    """As `jobs.core.failover.diagnosis.Class`."""
    node: str = ""
    """The node that shows it; empty: it is not known."""


@dataclass(frozen=True, slots=True)
class Pauses:
    """When an attempt ran and made no steps."""

    hung: tuple[tuple[int, int], ...] = ()
    """From and until, milliseconds since the epoch."""
    checkpoint: int = 0
    """Milliseconds in all, spread evenly over the time that it ran."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A stretch of a job in which one thing happened to it. Times are milliseconds since the epoch."""

    part: Part
    begin: int
    end: int
    span: Span
    stop: Stop | None = None
    """The failure or preemption that it is owed to; None: none is."""
    ended_by: Stop | None = None
    """What cut the attempt short that it is part of."""
    is_first_wait: bool = False
    """Before its first placement: what no failure can have caused."""


@dataclass(slots=True)
class Times:
    """What became of the time of some jobs: milliseconds, and those times their GPUs."""

    ms: dict[Part, int] = field(default_factory=lambda: defaultdict(int))
    gpu_ms: dict[Part, int] = field(default_factory=lambda: defaultdict(int))
    first_wait_ms: int = 0
    failures: int = 0
    """Attempts that failed or were lost within the time."""

    @property
    def run_ms(self) -> int:
        return sum(self.ms[part] for part in RUNNING)

    @property
    def ettr(self) -> float | None:
        """The share of the time since the first placement that was productive; None: there was none."""
        total = sum(self.ms.values()) - self.first_wait_ms
        return self.ms[Part.PRODUCTIVE] / total if total > 0 else None

    @property
    def mtbf_ms(self) -> float | None:
        """Time that jobs ran for each failure; None: there was none."""
        return self.run_ms / self.failures if self.failures else None


def slices(spans: Iterable[Span], stops: Mapping[Key, Stop], pauses: Mapping[Key, Pauses]) -> Iterator[Slice]:
    """The spans of jobs, cut where something else happened to the job. Suspended time is left out."""
    ordered = sorted(spans, key=lambda span: (span.job, span.begin, span.end))
    for _, of_job in groupby(ordered, key=lambda span: span.job):
        yield from _of_job(list(of_job), stops, pauses)


def _of_job(spans: Sequence[Span], stops: Mapping[Key, Stop], pauses: Mapping[Key, Pauses]) -> Iterator[Slice]:
    owed: Stop | None = None
    is_placed = False
    ran = _running(spans)
    for span in spans:
        if span.number == 0:
            if span.kind != Owner.SUSPENDED:
                yield Slice(Part.WAITING, span.begin, span.end, span, owed, is_first_wait=not is_placed)
            continue
        is_placed = True
        key = (span.job, span.number)
        own = stops.get(key) or Stop("unknown") if cuts_short(span.outcome) else None
        if span.kind in (Owner.MEMBER, Owner.IMAGE):
            yield Slice(Part.RESTART, span.begin, span.end, span, owed, own)
        else:
            yield from _of_run(span, own, pauses.get(key, _NONE), ran[key])
        if own is not None:
            owed = own
        elif span.kind not in (Owner.MEMBER, Owner.IMAGE):
            owed = None  # it runs again: what follows is not owed to what stopped it before


_NONE = Pauses()


def _running(spans: Iterable[Span]) -> Mapping[Key, int]:
    ran: dict[Key, int] = defaultdict(int)
    for span in spans:
        if span.number and span.kind not in (Owner.MEMBER, Owner.IMAGE):
            ran[span.job, span.number] += span.end - span.begin
    return ran


def _of_run(span: Span, stop: Stop | None, pauses: Pauses, ran: int) -> Iterator[Slice]:
    part = Part.PRODUCTIVE
    if span.kind == UNSAVED:
        part = Part.LOST
    elif stop is not None and span.kind != SAVED:
        part = Part.UNKNOWN
    at = span.begin
    for begin, end in sorted(pauses.hung):
        begin, end = max(begin, at), min(end, span.end)
        if begin < end:
            yield from _worked(part, at, begin, span, stop, pauses, ran)
            yield Slice(Part.HUNG, begin, end, span, stop, stop)
            at = end
    yield from _worked(part, at, span.end, span, stop, pauses, ran)


def _worked(
    part: Part, begin: int, end: int, span: Span, stop: Stop | None, pauses: Pauses, ran: int
) -> Iterator[Slice]:
    """Steps and, where work counts, their share of the time that checkpoints took, at the end of it."""
    owed = stop if part in (Part.LOST, Part.UNKNOWN) else None
    saving = min(end - begin, (end - begin) * pauses.checkpoint // ran) if part is Part.PRODUCTIVE and ran else 0
    if begin < end - saving:
        yield Slice(part, begin, end - saving, span, owed, stop)
    if saving > 0:
        yield Slice(Part.CHECKPOINT, end - saving, end, span, None, stop)


Namer = Callable[[Slice], str | None]


def add_up(cut: Iterable[Slice], begin: int, end: int, name_of: Namer, failure_of: Namer) -> dict[str, Times]:
    """Of ``[begin, end)``, by name; what has none is left out. A failure counts where the last slice of its attempt ended."""
    sums: dict[str, Times] = defaultdict(Times)
    last: dict[Key, Slice] = {}
    for each in cut:
        name, span = name_of(each), each.span
        length = min(each.end, end) - max(each.begin, begin)
        if name is not None and length > 0:
            times = sums[name]
            times.ms[each.part] += length
            times.gpu_ms[each.part] += length * span.gpus
            times.first_wait_ms += length if each.is_first_wait else 0
        if span.number and is_failure(span.outcome):
            key = (span.job, span.number)
            last[key] = max(last.get(key, each), each, key=lambda one: one.end)
    for each in last.values():
        name = failure_of(each) if begin < each.end <= end else None
        if name is not None:
            sums[name].failures += 1
    return dict(sums)


def is_failure(outcome: str) -> bool:
    """Whether an attempt with this end failed: not what its queue, a person or a limit of time ended."""
    return cuts_short(outcome) and outcome not in (Outcome.RECLAIMED, Outcome.TIMED_OUT, Outcome.DRAINED)
