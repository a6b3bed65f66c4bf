"""Whether the fleet's Lease has expired, by the agent's own clock; pure.

``renewTime`` is compared with the one seen before, never with a clock: it only says that the Lease was renewed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

UNKNOWN_DURATION_S = 60.0
"""Of a Lease that does not say how long it lasts: none was sent by a fleet, or it was deleted."""


@dataclass(slots=True)
class FleetLease:
    """What this process has seen of the Lease since it started."""

    started_at: float
    duration_s: float = UNKNOWN_DURATION_S
    renewal: str = ""
    _renewed_at: float | None = None
    """None: no renewal was seen yet. The one that is found at the start may be of any age."""
    _found: bool = False

    def look(self, lease: Mapping[str, Any], now: float) -> bool:
        """Returns whether the Lease was renewed since the last look."""
        spec = lease.get("spec") or {}
        renewal = str(spec.get("renewTime") or "")
        is_new, self._found = self._found and renewal not in ("", self.renewal), True
        if is_new or self._renewed_at is None:
            # A duration counts with the renewal that brought it: the fleet reckons with that of each one it has sent.
            self.duration_s = _seconds(spec.get("leaseDurationSeconds"))
        self.renewal = renewal
        if is_new:
            self._renewed_at = now
        return is_new

    def has_expired(self, now: float) -> bool:
        """Whether copies must stop now.

        A process that has just started waits for half of the duration only: another one may have waited before it.
        """
        if self._renewed_at is None:
            return now - self.started_at > self.duration_s / 2
        return now - self._renewed_at > self.duration_s


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) and value > 0 else UNKNOWN_DURATION_S
