"""Sees steps of the shared clock, so that limits of time do not count an hour that never passed.

The process that sweeps compares how far the shared clock and its own monotonic clock went on since its last look. One that was
just started has nothing to compare with: after a downtime of Convoy the time did pass. Nor does one that slept while others
looked: the row that all of them write has no gap then.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.db.models import Q
from structlog import get_logger

from fleet.core import clock_steps
from fleet.core.clock_steps import STEP, Span, Step
from fleet.db import prepared
from fleet.models import ClockReading, ClockStep

log = get_logger(__name__)

_NOTHING = datetime.fromtimestamp(0, UTC)
"""Nothing was written before."""
_WRITTEN_EVERY = timedelta(seconds=10)
_KEPT = 16
"""Older steps are folded into one: times from before them are long ago, and count as later at most."""
SETTLED = timedelta(minutes=10)
"""How long after a step forward the former time still decides on deadlines: a wrong time is corrected meanwhile."""


class StepDetector:
    """Of one process; called while it alone sweeps."""

    def __init__(self) -> None:
        self._seen: tuple[datetime, float] | None = None
        """The shared clock without its steps, and the monotonic clock of this process, at the last look."""

    def look(self, now: datetime, monotonic: float) -> None:
        known = _READING.objects()
        reading = known[0] if known else ClockReading.objects.create(at=now, stepped=timedelta())
        gap = now - reading.at
        if abs(gap) > STEP and (step := self._step(reading, now, monotonic)):
            reading = _note(reading, step, now)
        elif not timedelta() <= gap < _WRITTEN_EVERY:
            ClockReading.objects.filter(pk=reading.pk, at=reading.at).update(at=now)
        self._seen = now - reading.stepped, monotonic

    def _step(self, reading: ClockReading, now: datetime, monotonic: float) -> Step | None:
        if self._seen is None:
            is_set_back = now < reading.at
            return Step(reading.at, now - 2 * STEP, now - reading.at) if is_set_back else None
        at, counted = self._seen
        by = now - reading.stepped - at - timedelta(seconds=monotonic - counted)
        return Step(now - by, reading.at + by, by) if abs(by) > STEP else None


@transaction.atomic
def _note(reading: ClockReading, step: Step, now: datetime) -> ClockReading:
    stepped = reading.stepped + step.by
    if ClockReading.objects.filter(pk=reading.pk, at=reading.at).update(at=now, stepped=stepped):
        ClockStep.objects.create(before=step.before, after=step.after, by=step.by, noted_at=now)
        _fold()
        log.warning("the clock has stepped; limits of time do not count that", seconds=step.by.total_seconds())
    return ClockReading.objects.get(pk=reading.pk)


def _fold() -> None:
    rows = list(ClockStep.objects.order_by("pk"))
    while len(rows) > _KEPT:
        oldest, row = rows.pop(0), rows[0]
        step = clock_steps.folded(_step_of(oldest), _step_of(row))
        row.before, row.after, row.by = step.before, step.after, step.by
        row.save(update_fields=["before", "after", "by"])
        oldest.delete()


def _step_of(row: ClockStep) -> Step:
    return Step(row.before, row.after, row.by)


@dataclass(frozen=True, slots=True)
class Elapsed:
    """How much time has passed until ``now`` since stored times."""

    now: datetime
    deadlines_until: datetime
    """Deadlines until then have come. Shortly after a step forward that is the former time."""
    _spans: Sequence[Span]

    def since(self, at: datetime) -> timedelta:
        return clock_steps.elapsed(self._spans, at, self.now)

    def latest(self, wait: timedelta = timedelta()) -> datetime:
        """What was reached ``wait`` ago was by then, however the clock has stepped: nothing later is due."""
        return self.now - min(span.stepped for span in self._spans) - wait

    def before(self, limit: timedelta) -> datetime:
        """Every time before it is at least ``limit`` ago."""
        bounds = ((self.now - span.stepped - limit, span) for span in self._spans)
        bound, span = next((bound, span) for bound, span in bounds if span.end is None or bound < span.end)
        return bound if span.first is None else max(bound, span.first)

    def over(self, since: str, limit: timedelta) -> Q:
        """Rows whose column ``since`` is at least ``limit`` ago."""
        return self.due(since, since, limit)

    def due(self, since: str, until: str, wait: timedelta = timedelta()) -> Q:
        """Rows whose column ``until``, which counts from ``since``, was reached ``wait`` ago."""
        due = Q()
        for span in self._spans:
            inside = {f"{until}__lte": self.now - span.stepped - wait}
            if span.first is not None:
                inside[f"{since}__gte"] = span.first
            if span.end is not None:
                inside[f"{since}__lt"] = span.end
            due |= Q(**inside)
        return due


_STEPS = prepared.Rows(lambda _: ClockStep.objects.order_by("pk"))
_READING = prepared.Rows(lambda _: ClockReading.objects.order_by("pk")[:1])


def is_followed(now: datetime) -> bool:
    """Whether a step of the clock up to now would have been noted: the sweep has looked lately."""
    reading = ClockReading.objects.first()
    return reading is None or abs(now - reading.at) <= STEP


def forgettable_before(keep: timedelta, now: datetime) -> datetime:
    """What was written before it has been kept for so long. Nothing was, while a step of the clock may not be noted yet."""
    return elapsed(now).before(keep) if is_followed(now) else _NOTHING


def elapsed(now: datetime) -> Elapsed:
    rows = _STEPS.objects()
    steps = [_step_of(row) for row in rows]
    forward = (row.by for row in rows if row.by > timedelta() and timedelta() <= now - row.noted_at < SETTLED)
    return Elapsed(now, now - sum(forward, timedelta()), clock_steps.spans(steps, now))
