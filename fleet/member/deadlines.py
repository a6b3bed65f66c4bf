"""How long the requests of a thread may take as a whole, whatever the other side sends.

A timeout of a socket is for each wait: who sends a byte now and then (of a head, a chunk's size or a trailer) never reaches it.
So every wait of a socket is cut at the deadline of the thread that waits.
"""

import math
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any

_until: ContextVar[float] = ContextVar("until", default=math.inf)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What this thread asks members until the end of the block fails after so long; an outer block's deadline holds too."""
    before = _until.set(min(_until.get(), monotonic() + seconds))
    try:
        yield
    finally:
        _until.reset(before)


def at_most(timeout: float | None) -> float | None:
    """The timeout, or what is left if that is less; raises `TimeoutError` where nothing is."""
    left = _until.get() - monotonic()
    if left <= 0:
        raise TimeoutError("the deadline is over")
    return timeout if left > (math.inf if timeout is None else timeout) or left == math.inf else left


class TimedSocket(ssl.SSLSocket):
    """http.client reads with `recv_into`; `sendall` calls `send`."""

    def do_handshake(self, block: bool = False) -> None:
        with self._timed():
            super().do_handshake(block)

    def recv_into(self, *args: Any, **kw: Any) -> int:
        with self._timed():
            return super().recv_into(*args, **kw)

    def send(self, *args: Any, **kw: Any) -> int:
        with self._timed():
            return super().send(*args, **kw)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        timeout = self.gettimeout()
        shorter = at_most(timeout)
        if shorter == timeout:
            yield
            return
        self.settimeout(shorter)
        try:
            yield
        finally:
            self.settimeout(timeout)
