"""So many a second for each caller."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

from fleet.limits.callers import KEPT


class Buckets:
    """A token bucket for each key."""

    def __init__(self, per_s: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s, self._burst, self._clock = per_s, burst, clock
        self._levels: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, key: Hashable) -> float:
        """0 if it may go on; else the seconds until it may, and nothing is taken."""
        now = self._clock()
        level, at = self._levels.pop(key, (self._burst, now))
        level = min(self._burst, level + (now - at) * self._per_s)
        allowed = level >= 1
        self._levels[key] = (level - allowed, now)
        if len(self._levels) > KEPT:
            self._levels.popitem(last=False)
        return 0.0 if allowed else (1 - level) / self._per_s


class TooMany(Exception):
    def __init__(self, message: str, *, after_s: float = 1.0, status: int = 429) -> None:
        super().__init__(message)
        self.message, self.status, self.after_s = message, status, max(1, math.ceil(after_s))
