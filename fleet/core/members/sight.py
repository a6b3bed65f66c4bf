"""As of when the rows of a member are true, and for how long something in it has been observed.

A picture is current while the watches of the member stand and what they delivered is written. What was not seen is not judged:
time that passes unobserved, because the watcher or all of Convoy was away, counts for nothing. Knows no database.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

CURRENT = timedelta(seconds=5)
"""A picture confirmed this recently is true now: watchers confirm every two seconds."""
LOOKS_PAUSE = timedelta(seconds=30)
"""A heartbeat that has not looked for this long was away itself: what it found before says nothing of now."""


@dataclass(frozen=True, slots=True)
class Sight:
    """An unbroken time in which the picture was current; without an end, no watcher keeps account of it."""

    since: datetime | None = None
    until: datetime | None = None

    def as_of(self, now: datetime) -> datetime:
        """Decide nothing about the member that is later than this."""
        return now if self.until is None or now - self.until <= CURRENT else self.until

    def seen_for(self, event: datetime, now: datetime) -> timedelta:
        """How long what began at ``event`` has been seen, without a break."""
        began = max(event, self.since) if self.since else event
        return max(self.as_of(now) - began, timedelta())

    def is_stale(self, now: datetime, most: timedelta) -> bool:
        return self.until is not None and now - self.until > most
