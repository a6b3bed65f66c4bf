"""The threads of one process that talk to members: no member holds more than its share, however slowly it answers.

A member that answers quickly has a lane of its own; all that are slow share one, so that many of them hold no more threads than
one does. What finds its lane full waits here, not in a thread, and is handed out as threads leave the lane. It is kept in
memory alone: the rows say what is due, and the sweep finds what a process that died had kept waiting.
"""

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

SLOW_S = 2.0
"""A member is slow from a dispatch that took longer than this until one that did not."""
TOGETHER = 8
"""Works handed out at once."""


@dataclass(slots=True)
class _Waiting:
    """Works of one member. Those that end copies and those that send some take turns, so that neither starves the other."""

    ends: dict[int, None] = field(default_factory=dict)
    sends: dict[int, None] = field(default_factory=dict)

    def take(self) -> list[int]:
        taken: list[int] = []
        while len(taken) < TOGETHER and (self.ends or self.sends):
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
        """Whether the thread may talk to the member now; then it has to `leave`. Else the works wait.

        A member under suspicion fails its health checks.
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
        """The thread is free again; returns works that may be tried in its place.

        ``longest_s`` is the longest dispatch; None: there was none, and nothing is known of the member.
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
        """Of the member that has waited longest for its turn."""
        for member in list(self._waiting):
            if not self._has_room(member):
                continue
            waiting = self._waiting.pop(member)
            taken = waiting.take()
            if waiting.ends or waiting.sends:
                self._waiting[member] = waiting
            return taken
        return []
