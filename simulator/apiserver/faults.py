"""The faults of a simulated API server, which can be changed at run time from any thread.

An open stream waits for events and does not poll these fields. It registers a listener, which is called after every change.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Faults:
    away: bool = False
    """Every connection is dropped without an answer."""
    slow_s: float = 0.0
    """Every response is delayed by this time."""
    error_rate: float = 0.0
    """The share of requests answered with 500, 503 or 429."""
    reset_rate: float = 0.0
    """The share of requests whose connection breaks after the request has been carried out."""
    stale_watch: bool = False
    """Watches stay open but send nothing. When this is switched off, they expire (410)."""
    denied: set[str] = field(default_factory=set)
    """ServiceAccounts, as ``namespace/name``, without any permissions."""
    rng: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311  (faults are no secret)

    listeners: set[Callable[[], None]] = field(default_factory=set)
    """Called after every change of a field, by the thread that made it."""

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        for listener in tuple(getattr(self, "listeners", ())):
            listener()

    def error_code(self) -> int | None:
        if self.error_rate and self.rng.random() < self.error_rate:
            return self.rng.choice((500, 503, 429))
        return None

    def breaks_answer(self) -> bool:
        return bool(self.reset_rate) and self.rng.random() < self.reset_rate
