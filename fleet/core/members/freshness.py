"""How recent the stored state of a member is, and for how long something in it has been observed without interruption.

The state is current while the member's watches are open and everything they delivered is written. Time during which nothing
watched, because the watcher or all of Convoy was down, does not count. This module does not use the database.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

CURRENT = timedelta(seconds=5)
"""State confirmed this recently counts as current: watchers confirm every two seconds."""
HEARTBEAT_GAP = timedelta(seconds=30)
"""After a longer gap between two heartbeats Convoy itself was down: what the last one reported says nothing about now."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """The last uninterrupted interval in which the state was current; without an end, no watcher records it."""

    since: datetime | None = None
    until: datetime | None = None

    def as_of(self, now: datetime) -> datetime:
        """The latest time about which anything may be decided for the member."""
        return now if self.until is None or now - self.until <= CURRENT else self.until

    def observed_for(self, event: datetime, now: datetime) -> timedelta:
        """How long what began at ``event`` has been observed without interruption."""
        began = max(event, self.since) if self.since else event
        return max(self.as_of(now) - began, timedelta())

    def is_stale(self, now: datetime, most: timedelta) -> bool:
        return self.until is not None and now - self.until > most
