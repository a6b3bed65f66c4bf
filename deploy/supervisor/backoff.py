"""How long to wait before a child that ended is started again. Pure: time comes in as an argument."""

from dataclasses import dataclass

FIRST_S = 0.25
CAP_S = 30.0
HEALTHY_S = 60.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """Doubles with each quick end, and starts afresh after a life longer than ``HEALTHY_S``."""

    ends: int = 0

    def after(self, lived_s: float) -> "Backoff":
        return Backoff(1 if lived_s >= HEALTHY_S else self.ends + 1)

    @property
    def wait_s(self) -> float:
        if not self.ends:
            return 0.0
        return float(min(CAP_S, FIRST_S * 2 ** min(self.ends - 1, 16)))
