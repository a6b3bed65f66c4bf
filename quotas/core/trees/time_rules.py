"""What a node states about time: how long jobs may wait and run, and its budget of GPU-hours.

Parses attributes, which are text. Knows nothing of jobs; who waits or runs too long is for the services that end them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from quotas.core.trees import durations
from quotas.core.trees.budgets import BUDGET, Budget, parse_budget
from quotas.core.trees.validation import Fault

QUEUE_TIMEOUT = "queue-timeout"
MAX_RUNTIME = "max-runtime"
KNOWN = (QUEUE_TIMEOUT, MAX_RUNTIME, BUDGET)
_LONGEST = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class TimeRules:
    """Limits are the least of a node's own and its ancestors'; None: there is none."""

    queue_timeout: timedelta | None = None
    """How long a job may wait at a stretch for quota and room before it ends."""
    max_runtime: timedelta | None = None
    """How long an attempt may run before the job ends."""
    budget: Budget | None = None
    """Its own alone."""


def parse_time_rules(stated: Mapping[str, Any], inherited: TimeRules, faults: list[Fault]) -> TimeRules:
    return TimeRules(
        queue_timeout=_limit(QUEUE_TIMEOUT, stated, inherited.queue_timeout, faults),
        max_runtime=_limit(MAX_RUNTIME, stated, inherited.max_runtime, faults),
        budget=parse_budget(stated.get(BUDGET), faults),
    )


def _limit(key: str, stated: Mapping[str, Any], inherited: timedelta | None, faults: list[Fault]) -> timedelta | None:
    if (value := stated.get(key)) is None:
        return inherited
    duration = durations.parse_duration(value)
    if duration is None or not timedelta() < duration <= _LONGEST:
        faults.append((key, f"must be {durations.FORMAT}, above 0 and at most {_LONGEST.days}d, not {value!r}"))
        return inherited
    return min(duration, inherited or duration)
