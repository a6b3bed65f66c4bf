"""Times of a calendar as five fields of cron state them: minute, hour, day of the month, month, day of the week.

As cron has it, a time counts if either of both kinds of days matches where both are stated. Times are those of clocks on the
wall: one that a clock skips in spring is an hour later, and one that comes twice in autumn counts once.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import product

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
_PART = re.compile(r"(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/(\d{1,2}))?", re.ASCII)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Cron:
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """From 0, which is Sunday."""
    states_days: bool
    states_weekdays: bool

    @property
    def times_a_day(self) -> int:
        return len(self.minutes) * len(self.hours)

    def between(self, since: datetime, until: datetime, zone: tzinfo) -> Iterator[datetime]:
        """The moments from ``since`` on and before ``until``, in UTC, in order."""
        day, last = since.astimezone(zone).date() - _DAY, until.astimezone(zone).date()
        while day <= last:
            if self._matches(day):
                clock = product(self.hours, self.minutes)
                moments = {datetime.combine(day, time(*at), zone).astimezone(UTC) for at in clock}
                yield from (at for at in sorted(moments) if since <= at < until)
            day += _DAY

    def _matches(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return of_month or of_week if self.states_days and self.states_weekdays else of_month and of_week


def parse_cron(value: object) -> Cron | str:
    """The times, or what is wrong with them."""
    parts = value.split() if isinstance(value, str) and len(value) <= 200 else []
    if len(parts) != len(_FIELDS):
        return f"must be five fields such as '0 8 * * 1-5' (minute, hour, day, month, weekday), not {value!r}"
    fields = []
    for text, (name, low, high) in zip(parts, _FIELDS, strict=True):
        numbers = _numbers(text, low, high)
        if numbers is None:
            return f"{name} must be numbers from {low} to {high}, such as 1,3 or 1-5 or */2, not {text!r}"
        fields.append(numbers)
    minutes, hours, days, months, weekdays = fields
    return Cron(
        tuple(sorted(minutes)), tuple(sorted(hours)), frozenset(days), frozenset(months),
        frozenset(number % 7 for number in weekdays), not parts[2].startswith("*"), not parts[4].startswith("*"),
    )  # fmt: skip


def _numbers(text: str, low: int, high: int) -> set[int] | None:
    numbers: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            return None
        first, last, step = (None if group is None else int(group) for group in match.groups())
        if first is None:
            first, last = low, high
        elif last is None:
            last = high if step is not None else first
        if not low <= first <= last <= high or step == 0:
            return None
        numbers.update(range(first, last + 1, step or 1))
    return numbers
