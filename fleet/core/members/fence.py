"""The agreement between the fleet and the agent in a member: who renews what, and when copies must have stopped. Pure.

The fleet renews a Lease in the member as long as it reaches it. The agent there stops the copies that depend on the Lease when
it has seen no renewal for the Lease's duration, by its own clock. Clocks of the two are never compared: each measures from its
own moment, the fleet from before it renewed, the agent from when it saw the renewal.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

NAMESPACE, NAME = "convoy-system", "convoy-fleet"
"""Of the Lease. The agent creates it, the fleet renews it."""
SEEN = "convoy.dev/renewal-seen"
"""Annotation of the Lease: the agent's answer to a renewal, which is the renewal's own time."""
LABEL, DEPENDS = "convoy.dev/fence", "lease"
"""Label of the copies that depend on the Lease."""
STOPPED = "convoy.dev/fenced-at"
"""Annotation of a copy that the agent has stopped."""
RENEWALS = 4
"""Renewals within the duration of the Lease."""
_MARGIN = timedelta(seconds=30)
"""For the agent's look at the Lease, its requests, and a renewal that arrives late."""


@dataclass(frozen=True, slots=True)
class Renewals:
    """What the fleet knows of the Lease in one member."""

    duration: timedelta
    renewed_at: datetime
    """Before the last renewal was sent, whether or not it arrived."""
    until: datetime
    """The latest time until which a renewal that was sent may let copies run."""
    seen_at: datetime | None
    """When the latest renewal was sent that the agent is known to have seen."""

    @property
    def is_answered(self) -> bool:
        """Whether the agent lived at the last renewals: it has seen one of the last three."""
        return self.seen_at is not None and self.renewed_at - self.seen_at <= self.duration * 3 / RENEWALS

    def has_agent(self, now: datetime) -> bool:
        """Whether a copy that is sent now is stopped when the member is cut off."""
        return self.is_answered and abs(now - self.renewed_at) <= self.duration

    def stopped_by(self, grace_s: float) -> datetime | None:
        """When the agent must have stopped the copies of a member that is cut off. None: it may not have lived.

        An agent that starts anew waits for half of the duration, because it does not know the renewals before.
        """
        if not self.is_answered:
            return None
        return self.until + self.duration / 2 + _MARGIN + timedelta(seconds=grace_s)
