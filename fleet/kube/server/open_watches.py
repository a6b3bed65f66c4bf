"""Whether watches that are open may go on: looked at for all of them at once, however many there are.

A watch asks no one: it reads here what the last look said. Who may do what is the server's to know.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass
from typing import Any

from fleet.kube.server.kinds import Namespaces
from fleet.kube.server.request import Request

log = logging.getLogger(__name__)

LOOK_S = 2.0
"""Seconds between two looks, and between two times that a watch reads what they said."""
MAX_FAILED = 3
"""Looks in a row that may fail, for example while the database restarts, before all watches end."""


@dataclass(eq=False, slots=True)
class OpenWatch:
    """What was asked, and the namespaces it was answered for."""

    request: Request
    target: Any
    namespaces: Namespaces
    is_allowed: bool = True


Look = Callable[[Sequence[OpenWatch]], Awaitable[Collection[OpenWatch] | None]]
"""Those of the watches that may not go on; None where that cannot be looked at now."""


class OpenWatches:
    def __init__(self, look: Look) -> None:
        self._look, self._open = look, set[OpenWatch]()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def one(self, request: Request, target: Any, namespaces: Namespaces) -> Iterator[Callable[[], bool]]:
        """While it is open: says whether it may go on."""
        watch = OpenWatch(request, target, namespaces)
        self._open.add(watch)
        if self._task is None or self._task.done():
            # Of no request: the task outlives the watch that begins it.
            self._task = asyncio.create_task(self._look_again(), context=Context())
        try:
            yield lambda: watch.is_allowed
        finally:
            self._open.discard(watch)

    async def _look_again(self) -> None:
        """Ends with the last watch; if it breaks, every watch ends, so that its reader comes again."""
        failures = 0
        try:
            while self._open:
                await asyncio.sleep(LOOK_S)
                watches = [each for each in self._open if each.is_allowed]
                lost = await self._look(watches)
                failures = failures + 1 if lost is None else 0
                if failures >= MAX_FAILED:
                    log.error("the rights of %s watches cannot be looked at: all end", len(watches))
                for each in watches if failures >= MAX_FAILED else lost or ():
                    each.is_allowed = False
        finally:
            for each in self._open:
                each.is_allowed = False
