"""One watch: what there is or was since, then changes as they come, with bookmarks, expiry and a time limit."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fleet import journal
from fleet.kube.status import KubeError, expired
from fleet.kubeapi.feed import Change, Feed, InThread
from fleet.kubeapi.kinds import Kind, Object
from fleet.kubeapi.lists import Wanted
from fleet.kubeapi.request import encoded
from fleet.kubeapi.tables import table

_BOOKMARK_S = 10.0
LONGEST_S = 3600
"""A watch that says nothing of its length ends after this."""


@dataclass(slots=True)
class Watch:
    """What one request asked for."""

    kind: Kind
    namespaces: frozenset[str] | None
    wanted: Wanted
    since: int
    """0: begin with everything there is."""
    bookmarks: bool
    initial: bool
    """Whether the end of the beginning is to be marked (``sendInitialEvents``)."""
    as_table: bool
    timeout_s: float
    still_allowed: Callable[[], Awaitable[bool]]
    """Asked now and then: a token may expire or be revoked meanwhile."""
    clock: Callable[[], datetime]
    known: set[str] = field(default_factory=set)
    """The uids the reader was told of or, from its list, knows."""
    headed: bool = False

    async def lines(self, feed: Feed, in_thread: InThread) -> AsyncGenerator[bytes]:
        """Encoded events, several joined where several are ready."""
        loop = asyncio.get_running_loop()
        try:
            since, first = await in_thread(self._begin)
        except KubeError as e:
            yield self._line("ERROR", e.as_status())
            return
        subscriber = await feed.subscribe(self.kind, since)
        try:
            yield first
            end, bookmark = loop.time() + self.timeout_s, loop.time() + _BOOKMARK_S
            while loop.time() < end and not subscriber.ended:
                changes, seen = subscriber.taken()
                if lines := b"".join(self._told(change) for change in changes):
                    yield lines
                if loop.time() >= bookmark:
                    bookmark = loop.time() + _BOOKMARK_S
                    if not await self.still_allowed():
                        return
                    if self.bookmarks:
                        yield self._bookmark(seen)
                await subscriber.wait(min(bookmark, end) - loop.time())
        finally:
            feed.leave(subscriber)

    def _begin(self) -> tuple[int, bytes]:
        """In a thread: the version to go on from, and what is told before."""
        version, first = self.since or journal.head(), b""
        if self.since and self.since < journal.floor():
            raise expired(f"too old resource version: {self.since} ({journal.floor()})")
        if not self.since or not self.wanted.everything:
            for shown in self.kind.objects(self.namespaces, None, self.wanted.exact):
                if self.wanted.takes(shown):
                    self.known.add(shown["metadata"]["uid"])
                    first += b"" if self.since else self._event("ADDED", shown)
        if self.initial:
            first += self._bookmark(version, {"k8s.io/initial-events-end": "true"})
        return version, first

    def _told(self, change: Change) -> bytes:
        if self.namespaces is not None and change.namespace and change.namespace not in self.namespaces:
            return b""
        shown = change.shown or self._remains(change)
        shown = {**shown, "metadata": {**shown["metadata"], "resourceVersion": str(change.version)}}
        now = change.action is not journal.Action.DELETED and self.wanted.takes(shown)
        fresh = change.action is journal.Action.ADDED or not self.wanted.everything
        was = change.uid in self.known or not fresh
        if not now and not was:
            return b""
        (self.known.add if now else self.known.discard)(change.uid)
        return self._event("MODIFIED" if was and now else "ADDED" if now else "DELETED", shown)

    def _remains(self, change: Change) -> Object:
        """Of an object that is gone, its names."""
        resource = self.kind.served.resource
        metadata = {"name": change.name, "namespace": change.namespace, "uid": change.uid}
        kept = {key: value for key, value in metadata.items() if value}
        return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": kept}

    def _event(self, kind: str, shown: Object) -> bytes:
        if not self.as_table:
            return self._line(kind, shown)
        version = {"resourceVersion": shown["metadata"]["resourceVersion"]}
        rows = table(self.kind, [shown], version, self.clock(), definitions=not self.headed)
        self.headed = True
        return self._line(kind, rows)

    def _bookmark(self, version: int, annotations: dict[str, str] | None = None) -> bytes:
        resource = self.kind.served.resource
        metadata: dict[str, Any] = {"resourceVersion": str(version), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        if self.as_table:
            return self._line("BOOKMARK", table(self.kind, [], metadata, self.clock(), definitions=not self.headed))
        return self._line("BOOKMARK", {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata})

    def _line(self, kind: str, found: Object) -> bytes:
        return encoded({"type": kind, "object": found}) + b"\n"
