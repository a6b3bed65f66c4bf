"""Watches: objects and changes of the storage as a stream of events, with bookmarks, expiry and a time limit."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fleet.kube import tables
from fleet.kube.requests.status import KubeError
from fleet.kube.server import open_watches
from fleet.kube.server.kinds import Kind, Namespaces, Object
from fleet.kube.server.request import encoded
from fleet.kube.server.selection import Selection

BOOKMARK_S = 60.0
"""About as often as a real API server."""
LONGEST_S = 3600
"""How long a watch lasts that states no time limit."""


@dataclass(frozen=True, slots=True)
class Event:
    """ADDED, MODIFIED or DELETED, and the object as it is now or last was."""

    type: str
    shown: Object
    encoded: dict[Any, bytes] = field(default_factory=dict)
    """The event as it is sent, by the form it is sent in: many watches send the same."""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What a watch asks of the storage."""

    kind: Kind
    namespaces: Namespaces
    selection: Selection
    since: int
    """The version after which changes are sent; 0 begins with all objects there are."""
    initial: bool = False
    """Whether it begins with all objects, whatever the version, and the end of these is marked (``sendInitialEvents``)."""
    user: Any = None

    @property
    def whole(self) -> bool:
        """Whether it begins with all objects there are; if not, its reader has a list of before."""
        return self.initial or not self.since


Frame = Callable[[Iterable[Event]], bytes]
"""Encodes events; several are joined."""

Right = Callable[[], AbstractContextManager[Callable[[], bool]]]
"""Entered as long as a watch is open; says whether it may go on."""


class Changes(ABC):
    """The changes a watch has still to send. Belongs to the storage, which ends it when the reader is too far behind."""

    @abstractmethod
    def ended(self) -> bool:
        """Whether no more will come."""

    @abstractmethod
    def error(self) -> KubeError | None:
        """Why it ended, where the reader has to know."""

    async def missed(self) -> AsyncIterator[bytes]:
        """What changed between the version the watch begins with and now, in parts; read it to its end before any other."""
        parts: list[bytes] = []
        for part in parts:
            yield part

    @abstractmethod
    async def take(self) -> tuple[list[Event], int]:
        """Changes since the last call, and the version up to which these are all; if more are left, `wait` returns at once."""

    @abstractmethod
    async def wait(self, seconds: float) -> None:
        """Returns when there are changes, or after that time; it may return before."""

    @abstractmethod
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Opening:
    """How a watch begins: the version, the objects there are at that version or later, and what comes behind it."""

    version: int
    first: AsyncIterator[bytes]
    """Read piece by piece, as the reader takes them, and to its end before the changes."""
    changes: Changes


@dataclass(slots=True)
class Watch:
    """One open watch, and how its events are written."""

    options: WatchOptions
    bookmarks: bool
    timeout_s: float
    include: str | None
    """What a row carries beside its cells where events are tables; None where they are objects."""
    clock: Callable[[], datetime]
    right: Right | None = None
    """None where rights do not end while a watch is open."""
    bookmark_s: float = BOOKMARK_S
    headed: bool = False

    async def lines(self, begin: Callable[[WatchOptions, Frame], Awaitable[Opening]]) -> AsyncGenerator[bytes]:
        """Encoded events, several joined where several are ready."""
        try:
            opening = await begin(self.options, self.framed)
        except KubeError as e:
            yield _line("ERROR", e.as_status())
            return
        changes, now = opening.changes, asyncio.get_running_loop().time
        end = now() + self.timeout_s
        try:
            with self.right() if self.right else nullcontext(_always) as may_go_on:
                async for lines in self._before_changes(opening):
                    yield lines
                    if now() >= end or not may_go_on():  # its reader may have taken any time over it
                        return
                async for lines in self._changes(changes, end, may_go_on):
                    yield lines
            if error := changes.error():
                yield _line("ERROR", error.as_status())
        finally:
            changes.close()

    async def _before_changes(self, opening: Opening) -> AsyncGenerator[bytes]:
        """What there is, and what changed until it was read."""
        async for piece in opening.first:
            yield piece
        if self.options.initial:
            yield self._bookmark(opening.version, {"k8s.io/initial-events-end": "true"})
        async for lines in opening.changes.missed():
            yield lines

    async def _changes(self, changes: Changes, end: float, may_go_on: Callable[[], bool]) -> AsyncGenerator[bytes]:
        now = asyncio.get_running_loop().time
        bookmark = now() + self.bookmark_s
        while now() < end and not changes.ended() and may_go_on():
            events, version = await changes.take()
            if events:
                yield self.framed(events)
            if self.bookmarks and now() >= bookmark:
                bookmark = now() + self.bookmark_s
                yield self._bookmark(version)
            wakes = [
                end,
                *([bookmark] if self.bookmarks else []),
                *([now() + open_watches.LOOK_S] if self.right else []),
            ]
            await changes.wait(min(wakes) - now())

    def framed(self, events: Iterable[Event]) -> bytes:
        return b"".join(self._framed(event) for event in events)

    def _framed(self, event: Event) -> bytes:
        if self.include is not None and not self.headed:
            return self._written(event)
        form = event.type, self.options.kind.served.resource.version, self.include
        if form not in event.encoded:
            event.encoded[form] = self._written(event)
        return event.encoded[form]

    def _written(self, event: Event) -> bytes:
        if self.include is None:
            return _line(event.type, event.shown)
        table = self._table([event.shown], {"resourceVersion": event.shown["metadata"]["resourceVersion"]})
        self.headed = True
        return _line(event.type, table)

    def _table(self, items: list[Object], metadata: Object) -> Object:
        """Only the first table of a watch names its columns."""
        columns, include = self.options.kind.table_columns(), self.include or ""
        return tables.table(columns, items, metadata, self.clock(), definitions=not self.headed, include=include)

    def _bookmark(self, version: int, annotations: dict[str, str] | None = None) -> bytes:
        resource = self.options.kind.served.resource
        metadata: Object = {"resourceVersion": str(version), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        if self.include is not None:
            return _line("BOOKMARK", self._table([], metadata))
        return _line("BOOKMARK", {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata})


def _always() -> bool:
    return True


def _line(kind: str, document: Object) -> bytes:
    return encoded({"type": kind, "object": document}) + b"\n"
