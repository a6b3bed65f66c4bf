"""Watches of events: the fleet's own from the journal, and those that members have, asked every few seconds while one is open.

Members' events are kept nowhere, so what a reader was sent is remembered for its watch. What the reader knows from a list of
before is not known here: an event that was last seen shortly before the watch began is sent once more.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta

from fleet.kube.requests.status import KubeError
from fleet.kube.server.watching import Changes, Event, WatchOptions
from fleet.kubeapi.objects import members
from fleet.services.members.member_events import Answer

POLL_S = 5.0
"""Between two questions to the members."""
_OVERLAP = timedelta(seconds=10)
"""Between a list and the watch that follows it, with what clocks of members differ."""
_REMEMBERED = 50_000

Ask = Callable[[], Awaitable[Answer]]


class WithMembers(Changes):
    """The changes of the journal, and beside them the events that are new in members."""

    def __init__(self, inner: Changes, options: WatchOptions, ask: Ask, now: Callable[[], datetime]) -> None:
        self._inner, self._options, self._ask = inner, options, ask
        self._since = None if options.whole else now() - _OVERLAP
        self._known: dict[str, tuple[object, object]] = {}
        self._new: list[Event] = []
        self._ready = asyncio.Event()
        self._polls = asyncio.create_task(self._poll())

    def ended(self) -> bool:
        return self._inner.ended()

    def error(self) -> KubeError | None:
        return self._inner.error()

    def missed(self) -> AsyncIterator[bytes]:
        return self._inner.missed()

    async def take(self) -> tuple[list[Event], int]:
        events, version = await self._inner.take()
        new, self._new = self._new, []
        self._ready.clear()
        for event in new:
            members.at_version(event.shown, version)
        return [*events, *new], version

    async def wait(self, seconds: float) -> None:
        waits = {asyncio.create_task(self._inner.wait(seconds)), asyncio.create_task(self._ready.wait())}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    def close(self) -> None:
        self._polls.cancel()
        self._inner.close()

    async def _poll(self) -> None:
        while True:
            with suppress(KubeError):
                self._compare(await self._ask())
            self._since = None
            await asyncio.sleep(POLL_S)

    def _compare(self, answer: Answer) -> None:
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        for shown in answer.events:
            uid, now = shown["metadata"]["uid"], (shown["count"], shown["lastTimestamp"])
            before, self._known[uid] = self._known.get(uid), now
            if before == now or not self._options.selection.takes(shown) or (before is None and self._is_listed(shown)):
                continue
            self._new.append(Event("MODIFIED" if before else "ADDED", shown))
        if self._new:
            self._ready.set()

    def _is_listed(self, shown: dict[str, object]) -> bool:
        """Whether the reader has it from its list: known in the first answer, and not seen shortly before."""
        last = shown["lastTimestamp"]
        return self._since is not None and (not last or datetime.fromisoformat(str(last)) < self._since)
