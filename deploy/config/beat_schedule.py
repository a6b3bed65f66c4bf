"""Intervals of beat that no step of the machine's clock makes shorter or longer.

Celery compares the wall clock with the time of the last run, which it also keeps in a file: set back by an hour, beat would
send nothing for an hour.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from celery.schedules import schedstate, schedule

_began, _began_at = datetime.now(UTC), time.monotonic()


def steady() -> datetime:
    """The time, counted on from the start of this process."""
    return _began + timedelta(seconds=time.monotonic() - _began_at)


class Every(schedule):
    """A run every so many seconds."""

    def __init__(self, run_every: Any, relative: bool = False, nowfun: Any = None, app: Any = None) -> None:
        super().__init__(run_every, relative, steady, app)

    def is_due(self, last_run_at: datetime) -> Any:
        if self.maybe_make_aware(last_run_at) > self.now():  # of an earlier process, whose clock was ahead
            return schedstate(is_due=True, next=self.seconds)
        return super().is_due(last_run_at)
