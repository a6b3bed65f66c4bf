"""GPU-hour budgets as a node of the tree states them: how much in a period of the calendar, and what follows then."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from quotas.core.trees.validation import Fault

BUDGET = "budget"
HOURS = "nvidia.com/gpu-hours"
_MOST = 10**9
_FORMAT = '\'{"nvidia.com/gpu-hours": 5000, "per": "month", "when-spent": "Wait"}\''


class Period(StrEnum):
    DAY = "day"
    WEEK = "week"
    """From Monday."""
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"

    def bounds(self, now: datetime) -> tuple[datetime, datetime]:
        """The period that holds ``now``: its first moment, and that of the next one."""
        day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        match self:
            case Period.DAY:
                return day, day + timedelta(days=1)
            case Period.WEEK:
                monday = day - timedelta(days=day.weekday())
                return monday, monday + timedelta(days=7)
        months = {Period.MONTH: 1, Period.QUARTER: 3, Period.YEAR: 12}[self]
        first = (day.month - 1) // months * months
        begin = day.replace(month=first + 1, day=1)
        after = first + months
        return begin, begin.replace(year=day.year + after // 12, month=after % 12 + 1)


class WhenSpent(StrEnum):
    WAIT = "Wait"
    """Nothing starts any more; what runs goes on."""
    BORROW_NOTHING = "BorrowNothing"
    """Only jobs within min start."""
    STOP = "Stop"
    """Nothing starts, and what runs is evicted."""


@dataclass(frozen=True, slots=True)
class Budget:
    gpu_hours: float
    per: Period = Period.MONTH
    when_spent: WhenSpent = WhenSpent.WAIT


def parse_budget(value: object, faults: list[Fault]) -> Budget | None:
    """The budget of a node; None: it has none. It is the node's own, and bounds all nodes below."""
    if value is None:
        return None
    try:
        body = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or HOURS not in body or body.keys() - {HOURS, "per", "when-spent"}:
        faults.append((BUDGET, f"must be JSON with {HOURS}, per and when-spent, such as {_FORMAT}"))
        return None
    wrong = len(faults)
    hours = body[HOURS]
    if isinstance(hours, bool) or not isinstance(hours, int | float) or not 0 <= hours <= _MOST:
        faults.append((BUDGET, f"{HOURS} must be a number from 0 to {_MOST}, not {hours!r}"))
    for key, choices in (("per", list(Period)), ("when-spent", list(WhenSpent))):
        if body.get(key, choices[0]) not in choices:
            faults.append((BUDGET, f"{key} must be one of {', '.join(choices)}, not {body[key]!r}"))
    if len(faults) > wrong:
        return None
    return Budget(
        float(hours),
        Period(body.get("per", Period.MONTH)),
        WhenSpent(body.get("when-spent", WhenSpent.WAIT)),
    )
