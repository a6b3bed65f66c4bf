"""Spans of jobs added up: GPU-hours by what became of them, waiting by cause, and cost. Exact, in whole milliseconds. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from jobs.core.explain.timeline import Owner
from jobs.core.failover.rules import Outcome

ATTEMPT = (Owner.MEMBER, Owner.IMAGE, Owner.RUNNING)
"""Kinds of spans in which an attempt has its GPUs."""
SAVED, UNSAVED = "saved", "unsaved"
"""Kinds of spans of a run that was cut short, where it is known until when it had saved its work: until then, and since."""
UNKNOWN = "Unknown"
"""In place of the code of a reason that was not kept yet."""
_RUNS = (Owner.RUNNING, SAVED, UNSAVED)
_LOST = frozenset({Outcome.FAILED, Outcome.REFUSED, Outcome.LOST, Outcome.VANISHED, Outcome.TIMED_OUT})
_MADE_WAY = frozenset({Outcome.RECLAIMED, Outcome.DRAINED})
"""Stopped on purpose, and not for a fault: for another job, or because a person drains a node or a cluster."""
_STOPPED = frozenset({Outcome.SUSPENDED, Outcome.DELETED, Outcome.SUPERSEDED})


@dataclass(frozen=True, slots=True)
class Span:
    """One stretch of a job. Times are milliseconds since the epoch."""

    job: str
    number: int
    kind: str
    begin: int
    end: int
    gpus: int
    outcome: str
    namespace: str
    user: str
    leaf: str
    cluster: str
    model: str
    price: float | None
    reason: str = ""
    """Code of the job's reason while it waited; empty: it did not, or the code was not kept yet."""
    name: str = ""
    """Of the job; empty: it was not kept yet."""


@dataclass(slots=True)
class Sums:
    """GPU-milliseconds of attempts; milliseconds of jobs that waited."""

    starting: int = 0
    """From the placement until all pods run."""
    useful: int = 0
    """Running, in attempts that succeeded or go on."""
    preempted: int = 0
    """Running, in attempts that made way for other jobs, or for a drain."""
    lost: int = 0
    """Running, in attempts that failed, were lost with their cluster, or ran out of time."""
    stopped: int = 0
    """Running, in attempts that a user stopped."""
    unsaved: int = 0
    """Of `preempted` and `lost`, after the attempt last saved its work, where that is known."""
    unknown: int = 0
    """Of `preempted` and `lost`, in attempts of which it is not known whether they saved their work."""
    waited: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """By who held the job up."""
    reasons: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """The same by the code of the job's reason."""
    cost: float = 0.0
    unpriced: int = 0
    """GPU-milliseconds without a known price."""
    attempts: set[tuple[str, int]] = field(default_factory=set)

    @property
    def total(self) -> int:
        return self.starting + self.useful + self.preempted + self.lost + self.stopped

    @property
    def goodput(self) -> float | None:
        """The share of all GPU-time that was useful; None: there was none."""
        return self.useful / self.total if self.total else None

    def add(self, span: Span, length: int) -> None:
        if span.number == 0:
            self.waited[span.kind] += length
            self.reasons[span.reason or UNKNOWN] += length
            return
        amount = span.gpus * length
        if not amount:
            return
        self.attempts.add((span.job, span.number))
        name = _part_of(span)
        setattr(self, name, getattr(self, name) + amount)
        if span.kind == UNSAVED:
            self.unsaved += amount
        elif span.kind == Owner.RUNNING and name in ("preempted", "lost"):
            self.unknown += amount
        if span.price is None:
            self.unpriced += amount
        else:
            self.cost += amount * span.price / 3_600_000


def _part_of(span: Span) -> str:
    if span.kind not in _RUNS:
        return "starting"
    if span.outcome in _MADE_WAY:
        return "preempted"
    return "lost" if span.outcome in _LOST else "stopped" if span.outcome in _STOPPED else "useful"


def cuts_short(outcome: str) -> bool:
    """Whether an attempt with this end lost what it had not saved."""
    return outcome in _MADE_WAY or outcome in _LOST


def add_up(spans: Iterable[Span], begin: int, end: int, name_of: Callable[[Span], str] | None) -> dict[str, Sums]:
    """Of ``[begin, end)``, by name; without ``name_of`` by month (UTC)."""
    sums: dict[str, Sums] = defaultdict(Sums)
    for span in spans:
        least, most = max(span.begin, begin), min(span.end, end)
        if least >= most:
            continue
        parts = [(name_of(span), most - least)] if name_of else _months(least, most)
        for name, length in parts:
            sums[name].add(span, length)
    return dict(sums)


def _months(begin: int, end: int) -> Iterator[tuple[str, int]]:
    """The months that a time touches, and how much of it is in each."""
    while begin < end:
        at = datetime.fromtimestamp(begin / 1000, UTC)
        following = datetime(at.year + at.month // 12, at.month % 12 + 1, 1, tzinfo=UTC)
        until = min(end, round(following.timestamp() * 1000))
        yield f"{at:%Y-%m}", until - begin
        begin = until
