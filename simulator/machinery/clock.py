"""Time for the controllers: wall-clock stamps as Kubernetes writes them, and simulated seconds squeezed by a scale.

Stamps are real moments, so they compare across members; *durations* (run times, back-off, deadlines) are simulated
seconds, and ``real`` turns them into seconds of the machine. Pure but for `WallClock`.
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
    """The fractions of a second that a stamp loses, remembered for as long as this process lives."""

    def __init__(self) -> None:
        self._exact: dict[str, float] = {}

    def note(self, key: str, moment: float) -> None:
        self._exact[key] = moment

    def at(self, key: str, text: str) -> float:
        """The moment behind the stamp: the exact one when we wrote it ourselves, else the whole second."""
        written = parse_stamp(text)
        exact = self._exact.get(key)
        return exact if exact is not None and int(exact) == int(written) else written

    def forget(self, key: str) -> None:
        self._exact.pop(key, None)
