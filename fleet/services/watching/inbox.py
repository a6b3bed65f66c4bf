"""What the readers of one member have delivered and no writer has written yet.

It is bounded: a full inbox holds up the readers of its member, and theirs alone. A batch is handed to a writer a moment after
its first delivery, and one at a time, so that what a member says is written in order although any thread may write it.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future

from structlog import get_logger

from fleet.member.watching import Delivery
from fleet.services.watching import reports
from fleet.services.watching.reports import Batch, Batches

log = get_logger(__name__)

_URGENT_S = 0.01
"""How long a batch stays open after an urgent delivery (`reports.is_urgent`)."""
_CALM_S = 0.05
"""How long it stays open otherwise. A gang that starts causes a burst of reports, and one write can serve them all."""
_BATCH = 1000
_BACKLOG = 4000
"""Deliveries that may wait. More wait in the readers, which bounds the memory."""


class Retry(Exception):  # noqa: N818 - nothing is wrong with the batch
    """The rest of the batch is to be written again after so many seconds."""

    def __init__(self, after_s: float) -> None:
        super().__init__(after_s)
        self.after_s = after_s


class Inbox:
    """Deliveries are put in from the event loop; ``write`` is called by a thread of the executor."""

    def __init__(self, loop: asyncio.AbstractEventLoop, writers: Executor, write: Callable[[Batches], None]) -> None:
        self._loop, self._writers, self._write = loop, writers, write
        self._waiting: deque[tuple[float, Delivery]] = deque()
        self._room = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._taken: tuple[Batches, float] | None = None
        """The batch that a writer has, or that is to be tried again; and the moment up to which it has all deliveries."""
        self._idle = threading.Event()
        self._idle.set()
        """Unset from the moment a writer is asked for until it is done."""
        self._until = time.monotonic()
        self.is_closed = False
        """Whether the watch was stopped, or a write failed in a way that a repetition does not mend."""

    @property
    def written_until(self) -> float:
        """Everything delivered before this moment of the monotonic clock is in rows."""
        now = time.monotonic()
        # In this order: a writer is asked for before it takes what waits.
        return now if not self._waiting and self._idle.is_set() else self._until

    async def put(self, delivery: Delivery) -> None:
        while len(self._waiting) >= _BACKLOG:
            self._room.clear()
            await self._room.wait()
        self._waiting.append((time.monotonic(), delivery))
        self._arm(_URGENT_S if reports.is_urgent(delivery) else _CALM_S)

    def close(self) -> None:
        """Nothing more is written, except for what a writer has begun."""
        self.is_closed = True

    def join(self, timeout_s: float) -> None:
        """Waits until no writer has anything of it."""
        self._idle.wait(timeout_s)

    def _arm(self, after_s: float) -> None:
        if self.is_closed or not self._idle.is_set():
            return  # the writer's end arms it again
        due = self._loop.time() + after_s
        if self._timer is None or due < self._timer.when():
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(due, self._hand_over)

    def _hand_over(self) -> None:
        self._timer = None
        if self.is_closed:
            self._idle.set()
            return
        self._idle.clear()
        self._writers.submit(self._drain).add_done_callback(self._drained)

    def _drain(self) -> None:
        """In a writer's thread."""
        self._taken = self._taken or self._take()
        batches, until = self._taken
        if not self.is_closed:
            self._write(batches)
        self._taken, self._until = None, until

    def _take(self) -> tuple[Batches, float]:
        batches: Batches = {}
        until = self._until
        for _ in range(min(_BATCH, len(self._waiting))):
            until, delivery = self._waiting.popleft()
            batches.setdefault(delivery.resource, Batch()).add(delivery)
        return batches, until

    def _drained(self, write: "Future[None]") -> None:
        self._loop.call_soon_threadsafe(self._done, write.exception())

    def _done(self, error: BaseException | None) -> None:
        self._room.set()
        if isinstance(error, Retry) and not self.is_closed:
            self._timer = self._loop.call_later(error.after_s, self._hand_over)
            return
        if error is not None and not isinstance(error, Retry):
            log.error("a watch ends by an error", exc_info=error)
            self.is_closed = True
        self._idle.set()
        if self._waiting:
            self._arm(_URGENT_S)
