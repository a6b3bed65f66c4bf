"""The time that processes compare with each other, through rows and messages: the database's.

Clocks of machines differ, and step when they are corrected. What one process writes (a lease's end, a claim, a heartbeat, the
due time of a retry) is judged by another, so every process takes its time from the one clock that they share. Between two
questions to the database it is counted on by the monotonic clock, which never steps. SQLite has no clock of its own: all its
processes are on one machine, and share that one's.

An event loop may not ask a database: there the last answer is counted on however old it is. The threads that answer the same
process' requests ask again often enough.
"""

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Q
from django.utils import timezone

_FRESH_S = 5.0
"""How long an answer is counted on: a step of the database's own clock is followed within it."""
STEP = timedelta(minutes=1)
"""A time that is further ahead was written before the clock was set back, if it is that of something that has happened.

Processes differ by `_FRESH_S` at most, and for no longer than that. A reader that waits for such a time would wait as long as
the clock was wrong; it counts as now instead.
"""
_lock = threading.Lock()
_known: tuple[datetime, float] | None = None


def now(*, ask: bool = False) -> datetime:
    """Asks the database when its last answer is too old; raises `OperationalError` when that is away.

    With ``ask`` it always does: a step of its clock is followed at once. Two processes of which only one has followed it would
    take each other's times for steps.
    In an event loop it never asks; before the first answer the time there is that of the machine.
    """
    global _known
    if connection.vendor != "postgresql":
        return timezone.now()
    known = _known
    if ask or known is None or not 0 <= time.monotonic() - known[1] < _FRESH_S:
        if _in_event_loop():
            return timezone.now() if known is None else _counted_on(known)
        with connection.cursor() as cursor:
            # Not the time the transaction began, which now() is.
            cursor.execute("SELECT clock_timestamp()")
            asked_at: datetime = cursor.fetchone()[0]
        with _lock:
            known = _known = asked_at.astimezone(UTC), time.monotonic()
    return _counted_on(known)


def _counted_on(known: tuple[datetime, float]) -> datetime:
    return known[0] + timedelta(seconds=time.monotonic() - known[1])


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def due_times(now: datetime, longest_wait: timedelta) -> dict[str, datetime]:
    """The times that `is_due` compares with. One beyond the longest wait was written before the clock was set back."""
    return {"now": now, "beyond": now + longest_wait + STEP}


def is_due(column: str, now: Any, beyond: Any) -> Q:
    """Rows whose time has come; ``now`` and ``beyond`` are times, or their places in a statement that is kept."""
    return Q(**{f"{column}__lte": now}) | Q(**{f"{column}__gt": beyond})
