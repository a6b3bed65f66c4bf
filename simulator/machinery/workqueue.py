"""A queue of keys for a controller's workers, like client-go's workqueue.

Each key is in the queue at most once, never processed by two workers at a time, and can be added after a delay.
"""

import heapq
import threading
import time
from collections import deque


class WorkQueue:
    """Thread-safe. A key that is added while a worker processes it is queued again when that worker is done."""

    def __init__(self) -> None:
        self._ready: deque[str] = deque()
        self._waiting: set[str] = set()
        self._held: set[str] = set()
        self._timers: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}
        self._closed = False
        self._changed = threading.Condition()

    def add(self, key: str) -> None:
        with self._changed:
            self._add(key)

    def add_after(self, key: str, delay_s: float) -> None:
        """Adds the key after the delay. If a key has several delays, the earliest counts."""
        at = time.monotonic() + max(delay_s, 0.0)
        with self._changed:
            if at < self._due.get(key, float("inf")):
                self._due[key] = at
                heapq.heappush(self._timers, (at, key))
                self._changed.notify()

    def take(self) -> str | None:
        """Waits for the next key and returns it. None once the queue is closed."""
        with self._changed:
            while not self._closed:
                wait_s = self._move_due()
                if self._ready:
                    key = self._ready.popleft()
                    self._waiting.discard(key)
                    self._held.add(key)
                    return key
                self._changed.wait(wait_s)
            return None

    def done(self, key: str) -> None:
        with self._changed:
            self._held.discard(key)
            if key in self._waiting:
                self._ready.append(key)
                self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _add(self, key: str) -> None:
        if key in self._waiting:
            return
        self._waiting.add(key)
        if key not in self._held:
            self._ready.append(key)
            self._changed.notify()

    def _move_due(self) -> float | None:
        """Moves due keys to the ready ones. Returns the seconds until the next is due."""
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            at, key = heapq.heappop(self._timers)
            if self._due.get(key) == at:
                del self._due[key]
                self._add(key)
        return self._timers[0][0] - now if self._timers else None
