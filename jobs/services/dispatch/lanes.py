"""Limits how many threads of a process one member can occupy, however slowly it answers.

A member that answers quickly has a lane of its own. All slow members share one lane, so that together they occupy no more
threads than a single member. Works whose lane is full wait here instead of blocking a thread, and are returned to the caller as
threads leave the lane. This state is in memory only: the rows record what is due, and the sweep finds the works that a crashed
process had waiting.
"""

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

SLOW_S = 2.0
"""A member counts as slow after a dispatch that took longer than this, until one takes less."""
BATCH = 8
"""Works returned at once."""


@dataclass(slots=True)
class _Waiting:
    """Works of one member. Works that end copies alternate with works that send copies, so that neither kind starves."""

    ends: dict[int, None] = field(default_factory=dict)
    sends: dict[int, None] = field(default_factory=dict)

    def take(self) -> list[int]:
        taken: list[int] = []
        while len(taken) < BATCH and (self.ends or self.sends):
            for queue in (self.ends, self.sends):
                if queue:
                    taken.append(next(iter(queue)))
                    del queue[taken[-1]]
        return taken


class Lanes:
    """Thread-safe."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._threads: Counter[int] = Counter()
        self._slow: set[int] = set()
        self._waiting: OrderedDict[int, _Waiting] = OrderedDict()

    def limit(self, size: int) -> None:
        """Lowers the size of a lane, never below one thread."""
        self._size = max(1, min(self._size, size))

    def enter(self, member: int, *, ends: Iterable[int], sends: Iterable[int], is_suspect: bool) -> bool:
        """Takes a place in the member's lane. Returns False when the lane is full; the works then wait here.

        After True, the caller must call `leave`. ``is_suspect`` means that the member fails its health checks; it then counts
        as slow.
        """
        with self._lock:
            if is_suspect:
                self._slow.add(member)
            if self._has_room(member):
                self._threads[member] += 1
                return True
            waiting = self._waiting.setdefault(member, _Waiting())
            waiting.ends |= dict.fromkeys(ends)
            waiting.sends |= dict.fromkeys(sends)
            return False

    def leave(self, member: int, longest_s: float | None) -> list[int]:
        """Frees the thread's place, and returns waiting works that may be dispatched instead.

        ``longest_s`` is the duration of the longest dispatch; None means that there was none, so that nothing new is known
        about the speed of the member.
        """
        with self._lock:
            self._threads -= Counter([member])
            if longest_s is not None:
                (self._slow.add if longest_s > SLOW_S else self._slow.discard)(member)
            return self._next()

    def _has_room(self, member: int) -> bool:
        if self._threads[member] >= self._size:
            return False
        return member not in self._slow or sum(self._threads[slow] for slow in self._slow) < self._size

    def _next(self) -> list[int]:
        """Takes the next works of the member that has waited longest and whose lane has a free place."""
        for member in list(self._waiting):
            if not self._has_room(member):
                continue
            waiting = self._waiting.pop(member)
            taken = waiting.take()
            if waiting.ends or waiting.sends:
                self._waiting[member] = waiting
            return taken
        return []
