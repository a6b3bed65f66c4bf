"""How much time has really passed since a stored time, where the clock that wrote it has stepped meanwhile.

Between two steps the clock runs a *course*. A time that lies in two courses, because the clock was set back, counts as of the
later one: then less time has passed, and no job ends too early. For the same reason steps since a time that set the clock back
altogether do not count: a step forward that was not seen may have come before them. Knows neither rows nor the clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

STEP = timedelta(minutes=1)
"""The clock is corrected by less without being noticed, and times of other processes may be ahead by less."""
_NONE = timedelta()


@dataclass(frozen=True, slots=True)
class Step:
    before: datetime
    """The latest time that can have been written before the step."""
    after: datetime
    """The earliest that can have been written after it."""
    by: timedelta
    """Positive where the clock was set forward."""


@dataclass(frozen=True, slots=True)
class Span:
    """Times from ``first`` (None: all before) until before ``end`` (None: all after)."""

    first: datetime | None
    end: datetime | None
    stepped: timedelta
    """How far the clock has stepped since them."""

    def __contains__(self, at: datetime) -> bool:
        return (self.first is None or self.first <= at) and (self.end is None or at < self.end)


def spans(steps: Sequence[Step], now: datetime) -> tuple[Span, ...]:
    """Every time is in one of them; ``steps`` in the order in which they happened."""
    courses = _courses(steps, now)
    edges = sorted({edge for course in courses for edge in (course.first, course.end) if edge is not None})
    found: list[Span] = []
    for first, end in zip([None, *edges], [*edges, None], strict=True):
        at = first if first is not None else (edges[0] - STEP if edges else now)
        stepped = next((course.stepped for course in courses if at in course), _NONE)
        if found and found[-1].stepped == stepped:
            first = found.pop().first
        found.append(Span(first, end, stepped))
    return tuple(found)


def _courses(steps: Sequence[Step], now: datetime) -> list[Span]:
    """The latest first; those of a clock that was set back overlap. Last the times that a step left out, which only a member's
    clock can have shown.
    """
    courses, left_out, end, stepped = [], [], now + STEP, _NONE
    for step in reversed(steps):
        courses.append(Span(step.after, end, max(stepped, _NONE)))
        left_out.append(Span(step.before, step.after, max(stepped, _NONE)))
        # What was written in the moment of the step is of the former course.
        end, stepped = step.before + timedelta(microseconds=1), stepped + step.by
    return [*courses, Span(None, end, max(stepped, _NONE)), *left_out]


def folded(first: Step, second: Step) -> Step:
    """One step in the place of the two oldest. No time before or between them counts as longer ago than with both."""
    return Step(max(first.before, second.before), second.after, second.by + max(first.by, _NONE))


def elapsed(spans: Sequence[Span], since: datetime, now: datetime) -> timedelta:
    return now - since - next(span.stepped for span in spans if since in span)
