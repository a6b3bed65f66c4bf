"""One watch: what there is or was since, then changes as they come, with bookmarks, expiry and a time limit."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fleet import journal
from fleet.kube.status import KubeError, expired
from fleet.kubeapi.feed import Feed, InThread
from fleet.kubeapi.kinds import Change, Kind, Object
from fleet.kubeapi.lists import Wanted, too_large
from fleet.kubeapi.request import encoded
from fleet.kubeapi.tables import table
from fleet.repeatable_read import repeatable_read

_BOOKMARK_S = 10.0
LONGEST_S = 3600
"""A watch that says nothing of its length ends after this."""


@dataclass(slots=True)
class Watch:
    """What one request asked for."""

    user_id: int
    kind: Kind
    namespaces: frozenset[str] | None
    wanted: Wanted
    since: int
    """0: begin with everything there is."""
    bookmarks: bool
    initial: bool
    """Whether it begins with everything, whatever the version, and the end of that is marked (``sendInitialEvents``)."""
    as_table: bool
    timeout_s: float
    still_allowed: Callable[[], Awaitable[bool]]
    """Asked now and then: a token may expire or be revoked meanwhile."""
    clock: Callable[[], datetime]
    known: set[str] = field(default_factory=set)
    """The uids the reader was told of or, from its list, knows; kept only where news does not say it."""
    headed: bool = False
    old: int = 0
    """Changes up to here were before the watch began."""

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
            if subscriber.expired:
                yield self._line("ERROR", _too_old(subscriber.seen).as_status())
        finally:
            feed.leave(subscriber)

    @property
    def _keeps_book(self) -> bool:
        """Whether news of an object does not say if the reader knew it."""
        return self.kind.follows or not self.wanted.everything

    @property
    def _whole(self) -> bool:
        """Whether it begins with everything there is; if not, its reader has a list of before."""
        return self.initial or not self.since

    def _begin(self) -> tuple[int, bytes]:
        """In a thread: the version to go on from, and what is told before.

        Head and objects are read at one moment: a deletion committed between them would be later than the head, and of an
        object that was never known, so that nothing would tell of it.
        """
        with repeatable_read():
            return self._read()

    def _read(self) -> tuple[int, bytes]:
        self.old = journal.tip()
        version = self.since if self.since and not self.initial else journal.head()
        if version < journal.floor():
            raise _too_old(version)
        if version > self.old:
            raise too_large(version, self.old)
        first, whole = [], self._whole
        if whole or self._keeps_book:
            for shown in self.kind.objects(self.namespaces, None, self.wanted.exact):
                if self.wanted.takes(shown):
                    self.known.update([shown["metadata"]["uid"]] if self._keeps_book else ())
                    first += [self._event("ADDED", shown)] if whole else []
        if self.initial:
            first.append(self._bookmark(version, {"k8s.io/initial-events-end": "true"}))
        return version, b"".join(first)

    def _told(self, change: Change) -> bytes:
        home = self.kind.home(change.namespace, change.name)
        if self.namespaces is not None and home and home not in self.namespaces:
            return b""
        shown = change.shown or self._remains(change)
        now = change.action is not journal.Action.DELETED and self.wanted.takes(shown)
        was = self._was_told(change)
        if not now and not was and not self._may_have_been(change, shown):
            return b""
        if self._keeps_book:
            (self.known.add if now else self.known.discard)(change.uid)
        event = "MODIFIED" if was and now else "ADDED" if now else "DELETED"
        if self.as_table and not self.headed:
            return self._event(event, shown)
        key = event, self.as_table
        if key not in change.encoded:
            change.encoded[key] = self._event(event, shown)
        return change.encoded[key]

    def _was_told(self, change: Change) -> bool:
        """Whether its reader knew it: what is new since the version he brought was not in his list, though it was there."""
        new = change.action is journal.Action.ADDED
        if not self._keeps_book:
            return not new
        unlisted = new and not self._whole and not self.kind.follows
        return change.uid in self.known and not unlisted

    def _may_have_been(self, change: Change, shown: Object) -> bool:
        """Whether the reader may know, from a list of before this watch, what no longer is or no longer fits.

        To say so of an object it never knew does no harm; to be silent of one it knew would.
        """
        gone = change.action is journal.Action.DELETED or not self.kind.follows
        return gone and not change.guessed and change.version <= self.old and self.wanted.may_take(shown)

    def _remains(self, change: Change) -> Object:
        """Of an object that is gone, its names."""
        resource = self.kind.served.resource
        version = str(change.version)
        metadata = {"name": change.name, "namespace": change.namespace, "uid": change.uid, "resourceVersion": version}
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


def _too_old(version: int) -> KubeError:
    return expired(f"too old resource version: {version}")
