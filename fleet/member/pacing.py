"""The rate at which one process sends requests to one member: a token bucket, as Kubernetes clients have (QPS and burst)."""

import threading
import time
from collections.abc import Callable


class TokenBucket:
    """Thread-safe. A request takes a token, on credit when there is none: then it waits until that token has come."""

    def __init__(self, qps: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._qps, self._burst, self._clock = qps, float(burst), clock
        self._tokens, self._at = float(burst), clock()
        self._lock = threading.Lock()

    def take(self) -> float:
        """Seconds to wait before the request may be sent."""
        with self._lock:
            now = self._clock()
            self._tokens = min(self._burst, self._tokens + max(0.0, now - self._at) * self._qps) - 1
            self._at = now
            return max(0.0, -self._tokens / self._qps)

    def wait(self) -> None:
        if seconds := self.take():
            time.sleep(seconds)
