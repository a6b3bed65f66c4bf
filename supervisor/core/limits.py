"""How often something may happen: token buckets, of which a bounded number is kept. Times are monotonic, from the caller."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(slots=True)
class Bucket:
    """Starts full. ``per_s`` come in, up to ``most``."""

    per_s: float
    most: float
    left: float
    at: float

    def take(self, now: float) -> bool:
        self.left = min(self.left + max(now - self.at, 0.0) * self.per_s, self.most)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Buckets:
    """One for each key, such as an address. Of more keys than ``keys`` the one that was used longest ago is forgotten."""

    def __init__(self, per_s: float, most: float, keys: int) -> None:
        self._per_s, self._most, self._keys = per_s, most, keys
        self._buckets: OrderedDict[Hashable, Bucket] = OrderedDict()

    def take(self, key: Hashable, now: float) -> bool:
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = Bucket(self._per_s, self._most, self._most, now)
            if len(self._buckets) > self._keys:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(key)
        return bucket.take(now)
