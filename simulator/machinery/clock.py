"""Time for the controllers: timestamps as Kubernetes writes them, and simulated durations with a time scale.

Timestamps are real time, so that they can be compared across members. Durations (run times, back-off, deadlines) are simulated
seconds, and ``real`` converts them to real seconds. Only `WallClock` reads the system's time.
"""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""

    def real(self, simulated_s: float) -> float:
        """How long ``simulated_s`` lasts on this clock."""


class WallClock:
    """The machine's time, with simulated seconds ``scale`` times as fast."""

    def __init__(self, scale: float = 1.0) -> None:
        if scale <= 0:
            raise ValueError(f"the time scale must be above 0, not {scale}")
        self._scale = scale

    def now(self) -> float:
        return time.time()

    def real(self, simulated_s: float) -> float:
        return simulated_s / self._scale


def stamp(moment: float) -> str:
    return datetime.fromtimestamp(moment, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_stamp(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


class Moments:
    """Remembers the exact times of timestamps that this process wrote, which have only whole seconds."""

    def __init__(self) -> None:
        self._exact: dict[str, float] = {}

    def note(self, key: str, moment: float) -> None:
        self._exact[key] = moment

    def at(self, key: str, text: str) -> float:
        """The time of the timestamp: exact if this process wrote it, else the whole second."""
        written = parse_stamp(text)
        exact = self._exact.get(key)
        return exact if exact is not None and int(exact) == int(written) else written

    def forget(self, key: str) -> None:
        self._exact.pop(key, None)
