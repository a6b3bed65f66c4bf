"""How many answers or streams each user has open, against a limit for one user and one for all.

Must not know what is open, nor how a refusal looks.
"""

from collections import Counter
from collections.abc import Hashable
from threading import RLock


class OpenPlaces:
    """Used from any thread, also by finalizers, which the garbage collector may run while this thread is in here."""

    def __init__(self) -> None:
        self._lock, self._taken = RLock(), Counter[Hashable]()

    def take(self, user: Hashable, *, of_one: int, in_all: int) -> bool:
        """False when the user, or all users together, have as many open as they may."""
        with self._lock:
            if self._taken[user] >= of_one or self._taken.total() >= in_all:
                return False
            self._taken[user] += 1
            return True

    def give_back(self, user: Hashable) -> None:
        with self._lock:
            self._taken[user] -= 1
            if self._taken[user] <= 0:
                del self._taken[user]

    def total(self) -> int:
        with self._lock:
            return self._taken.total()
