"""Carries news out of the process, in order and on a thread of its own: whoever has news does not wait until it is told.

It knows nothing of what it carries. News is a hint: what a process has not told yet when it dies, and what is too much for a
broker that is slow or away, is found again by the sweeps.
"""

import asyncio
import atexit
import contextlib
import logging
import threading
from collections.abc import Callable
from queue import Full, Queue

log = logging.getLogger(__name__)

BACKLOG = 10_000
"""Pieces of news on their way at once."""
_FAREWELL_S = 5.0
"""How long a process that ends waits for what is on its way."""
News = Callable[[], object]
"""Its coroutine, if it gives one, is run to its end."""


class Courier:
    """Its thread starts with the first news, and has one event loop, so that connections last."""

    def __init__(self, backlog: int = BACKLOG) -> None:
        self._bag: Queue[News | None] = Queue(backlog)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._overflows = False

    def carry(self, news: News) -> bool:
        """Tells it soon; False when there is too much to tell already. What goes wrong with it is logged, and no more."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="courier", daemon=True)
                self._thread.start()
                atexit.register(self.stop)
        try:
            self._bag.put_nowait(news)
        except Full:
            if not self._overflows:
                log.warning("%d pieces of news wait to be told: more is left to the sweeps", self._bag.maxsize)
            self._overflows = True
            return False
        self._overflows = False
        return True

    def stop(self) -> None:
        """Tells what it can in a moment; takes nothing any more."""
        if self._thread is not None:
            with contextlib.suppress(Full):
                self._bag.put(None, timeout=_FAREWELL_S)
            self._thread.join(_FAREWELL_S)

    def _run(self) -> None:
        with asyncio.Runner() as loop:
            while (news := self._bag.get()) is not None:
                try:
                    if asyncio.iscoroutine(rest := news()):
                        loop.run(rest)
                except Exception:
                    log.exception("news could not be told")


_of_this_process = Courier()
carry = _of_this_process.carry
