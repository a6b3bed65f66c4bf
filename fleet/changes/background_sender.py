"""Sends messages out of the process, in order and on a thread of its own, so that no caller waits for a broker.

It does not know what it sends. A message is a hint: what has not been sent when the process dies, and what is too much for a
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
"""Messages that may wait at once."""
_DRAIN_S = 5.0
"""How long a process that ends waits until the messages in the queue are sent."""
Message = Callable[[], object]
"""Sends something. The coroutine that it returns, if any, is run to its end."""


class BackgroundSender:
    """Its thread starts with the first message, and has one event loop, so that connections last."""

    def __init__(self, backlog: int = BACKLOG) -> None:
        self._queue: Queue[Message | None] = Queue(backlog)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._overflows = False

    def send(self, message: Message) -> bool:
        """Queues the message; False when the queue is full. An error while it is sent is logged, and no more."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="background sender", daemon=True)
                self._thread.start()
                atexit.register(self.stop)
        try:
            self._queue.put_nowait(message)
        except Full:
            if not self._overflows:
                log.warning("%d messages wait to be sent: further ones are left to the sweeps", self._queue.maxsize)
            self._overflows = True
            return False
        self._overflows = False
        return True

    def stop(self) -> None:
        """Sends what can be sent in a few seconds; takes nothing any more."""
        if self._thread is not None:
            with contextlib.suppress(Full):
                self._queue.put(None, timeout=_DRAIN_S)
            self._thread.join(_DRAIN_S)

    def _run(self) -> None:
        with asyncio.Runner() as loop:
            while (message := self._queue.get()) is not None:
                try:
                    if asyncio.iscoroutine(rest := message()):
                        loop.run(rest)
                except Exception:
                    log.exception("message could not be sent")


_of_this_process = BackgroundSender()
send = _of_this_process.send
