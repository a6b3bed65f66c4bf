"""Watch cache: follows the journal once for all watches of this process, and sends each its changes with the current objects.

Where the journal was compacted before it was read, changes were missed: every watch ends with status 410.
An object that changed twice between two reads is sent once. Every change carries the journal's version and not the row's:
a client that resumes from it misses nothing, because what was written later is sent again under its own version.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import Context
from typing import Any

from fleet.changes import journal
from fleet.kubeapi.objects.kinds import Change, Kind
from fleet.kubeapi.objects.last_known import LastKnown

_TICK_S = 0.1
_BATCH = 1000
_BACKLOG = 20_000
"""Changes a slow reader may be behind before its watch is ended."""

InThread = Callable[..., Awaitable[Any]]
"""Awaits a function that uses the database."""


class Subscriber:
    """One open watch, with the changes it has not sent yet."""

    def __init__(self, kind: Kind, seen: int) -> None:
        self.kind = kind
        self.seen = seen
        """All changes up to here were handed over."""
        self.ended = False
        self.expired = False
        """What came behind `seen` is forgotten."""
        self.pending: deque[Change] = deque()
        self._ready = asyncio.Event()

    def give(self, changes: Sequence[Change], seen: int) -> None:
        known = not changes or changes[0].version > self.seen
        self.pending += changes if known else [change for change in changes if change.version > self.seen]
        self.seen = max(self.seen, seen)
        self.ended = self.ended or len(self.pending) > _BACKLOG
        if self.pending:
            self._ready.set()

    def end(self, *, expired: bool = False) -> None:
        self.ended, self.expired = True, expired
        self._ready.set()

    def taken(self, most: int) -> tuple[list[Change], int]:
        """The next changes, and the version up to which these are all; `wait` returns at once while more are left."""
        changes = [self.pending.popleft() for _ in range(min(most, len(self.pending)))]
        if self.pending:
            return changes, changes[-1].version
        self._ready.clear()
        return changes, self.seen

    async def wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ready.wait(), max(seconds, 0))


class Feed:
    def __init__(self, in_thread: InThread) -> None:
        self._in_thread = in_thread
        self._subscribers: set[Subscriber] = set()
        self._task: asyncio.Task[None] | None = None
        self._position = 0
        self.last_known = LastKnown()
        self._turn = asyncio.Lock()
        """Held from reading the journal until its changes are queued, so that a watch subscribes between two reads, never
        amid one.
        """
        self.delivery = asyncio.Lock()
        """Held by the watch that turns its changes into events."""

    async def subscribe(self, subscriber: Subscriber) -> None:
        """For one that has read the journal up to `seen`; what came since then keeps all watches waiting while it is read.

        Raises Compacted.
        """
        async with self._turn:
            if not self._subscribers:
                self._position = await self._in_thread(journal.head)
            while subscriber.seen < self._position and not subscriber.ended:
                changes, seen = await self._in_thread(self.changes_after, subscriber.seen, (subscriber.kind,))
                subscriber.give(changes[subscriber.kind], seen)
            self._subscribers.add(subscriber)
        if self._task is None or self._task.done():
            # Of no request: the task outlives the watch that begins it.
            self._task = asyncio.create_task(self._follow(), context=Context())

    def leave(self, subscriber: Subscriber) -> None:
        self._subscribers.discard(subscriber)
        if all(each.kind is not subscriber.kind for each in self._subscribers):
            self.last_known.forget(subscriber.kind)

    def changes_after(
        self, version: int, kinds: Sequence[Kind], most: int = _BATCH
    ) -> tuple[dict[Kind, list[Change]], int]:
        """In a thread: as the function, with what is known of objects that are gone."""
        changes, seen = changes_after(version, kinds, most)
        return {kind: self.last_known.with_last(kind, each) for kind, each in changes.items()}, seen

    async def _follow(self) -> None:
        """Ends with the last watch; if it breaks, every watch ends, so that its reader comes again."""
        try:
            while self._subscribers:
                async with self._turn:
                    await self._look()
                await asyncio.sleep(_TICK_S)
        finally:
            for each in self._subscribers:
                each.end()

    async def _look(self) -> None:
        kinds = tuple({each.kind for each in self._subscribers})
        try:
            changes, self._position = await self._in_thread(self.changes_after, self._position, kinds)
        except Compacted:
            self._position = await self._in_thread(journal.head)
            for each in self._subscribers:
                each.end(expired=True)
            return
        for each in self._subscribers:
            each.give(changes.get(each.kind, ()), self._position)


class Compacted(Exception):
    """Of what changed, the beginning is forgotten."""


def changes_after(version: int, kinds: Sequence[Kind], most: int = _BATCH) -> tuple[dict[Kind, list[Change]], int]:
    """What changed behind ``version``, by kind, oldest first; and the version up to which that is all.

    Raises Compacted.
    """
    entries = journal.after(version, most)
    if entries and entries[0].version != version + 1 and 0 < version < journal.floor():
        raise Compacted
    changes = {kind: [change.versioned() for change in kind.changes_in(entries)] for kind in kinds}
    return changes, entries[-1].version if entries else version
