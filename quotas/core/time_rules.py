"""What a node states about time: how long jobs may wait and run. Attributes as text, parsed into values.

Knows nothing of jobs; who waits or runs too long is for the services that end them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from quotas.core import durations
from quotas.core.validation import Fault

QUEUE_TIMEOUT = "queue-timeout"
MAX_RUNTIME = "max-runtime"
KNOWN = (QUEUE_TIMEOUT, MAX_RUNTIME)
_LONGEST = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class TimeRules:
    """The least of a node's own and its ancestors'; None: there is no limit."""

    queue_timeout: timedelta | None = None
    """How long a job may wait at a stretch for quota and room before it ends."""
    max_runtime: timedelta | None = None
    """How long an attempt may run before the job ends."""


def parse_time_rules(stated: Mapping[str, Any], inherited: TimeRules, faults: list[Fault]) -> TimeRules:
    return TimeRules(
        queue_timeout=_limit(QUEUE_TIMEOUT, stated, inherited.queue_timeout, faults),
        max_runtime=_limit(MAX_RUNTIME, stated, inherited.max_runtime, faults),
    )


def _limit(key: str, stated: Mapping[str, Any], inherited: timedelta | None, faults: list[Fault]) -> timedelta | None:
    if (value := stated.get(key)) is None:
        return inherited
    duration = durations.parse_duration(value)
    if duration is None or not timedelta() < duration <= _LONGEST:
        faults.append((key, f"must be {durations.FORMAT}, above 0 and at most {_LONGEST.days}d, not {value!r}"))
        return inherited
    return min(duration, inherited or duration)
