"""What the journal means for one watch: which events its reader is sent, who knows objects only from a list and events.

The journal says that an object changed and not what it was, so what the reader knows is kept here where a change alone
does not say it. Every object and every change carries the journal's version.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from fleet.changes import journal
from fleet.changes.repeatable_read import repeatable_read
from fleet.kube.requests.status import KubeError, expired
from fleet.kube.server.kinds import Object
from fleet.kube.server.lists import too_large
from fleet.kube.server.watching import Changes, Event, Frame, Opening, WatchOptions
from fleet.kubeapi.feed import Compacted, Feed, InThread, Subscriber
from fleet.kubeapi.objects.kinds import Change, Kind
from fleet.kubeapi.objects.last_known import FIRST, LastKnown
from fleet.limits.seats import leave_seat

_PIECE = 200
"""Objects, or changes that were missed, of one watch that are in memory at once while it begins."""
_TURN = 100
"""Changes that one watch is sent before another one has its turn."""


async def begin(options: WatchOptions, frame: Frame, feed: Feed, in_thread: InThread) -> Opening:
    view = View(options, feed.last_known)
    version = await in_thread(view.begin)
    return Opening(version, _first(view, frame, in_thread), JournalChanges(view, feed, version, frame, in_thread))


async def _first(view: "View", frame: Frame, in_thread: InThread) -> AsyncIterator[bytes]:
    """The objects there are, each piece read when the one before it was taken: no thread waits for the reader."""
    pieces = view.pieces(frame) if view.options.whole else iter(())
    while (piece := await in_thread(next, pieces, None)) is not None:
        yield piece


class JournalChanges(Changes):
    """First from the journal itself, until it is near the newest change; then from the feed that all watches share."""

    def __init__(self, view: "View", feed: Feed, version: int, frame: Frame, in_thread: InThread) -> None:
        self._view, self._feed, self._frame, self._in_thread = view, feed, frame, in_thread
        self._subscriber = Subscriber(view.kind, version)

    async def missed(self) -> AsyncIterator[bytes]:
        options = self._view.options
        if not options.whole:
            chosen = self._view.kind, options.namespaces, options.selection.exact
            await self._in_thread(self._feed.last_known.read_first, *chosen)
        try:
            more = True
            while more:
                lines, more = await self._in_thread(self._read_on)
                if lines:
                    yield lines
            await self._feed.subscribe(self._subscriber)
        except Compacted:
            self._subscriber.end(expired=True)
        leave_seat()

    def _read_on(self) -> tuple[bytes, bool]:
        """In a thread: the next changes as they are sent, and whether there may be more."""
        kind, seen = self._view.kind, self._subscriber.seen
        changes, self._subscriber.seen = self._feed.changes_after(seen, (kind,), _PIECE)
        events = (self._view.event(change) for change in changes[kind])
        return self._frame(event for event in events if event), self._subscriber.seen > seen

    def ended(self) -> bool:
        return self._subscriber.ended

    def error(self) -> KubeError | None:
        return _too_old(self._subscriber.seen) if self._subscriber.expired else None

    async def take(self) -> tuple[list[Event], int]:
        """One watch at a time: a change that thousands of watches are sent keeps requests waiting for one of them at most."""
        if not self._subscriber.pending:
            return [], self._subscriber.seen
        async with self._feed.delivery:
            changes, seen = self._subscriber.taken(_TURN)
            events = [event for change in changes if (event := self._view.event(change))]
            await asyncio.sleep(0)  # not before others had their turn may the next watch have its own
        return events, seen

    async def wait(self, seconds: float) -> None:
        await self._subscriber.wait(seconds)

    def close(self) -> None:
        self._feed.leave(self._subscriber)


@dataclass
class View:
    options: WatchOptions
    last_known: LastKnown = field(default_factory=LastKnown)
    known: set[str] = field(default_factory=set)
    """The uids the reader knows, kept where a change does not say it."""
    old: int = 0
    """Changes up to this version were before the watch began."""

    @property
    def kind(self) -> Kind:
        kind: Kind = self.options.kind  # type: ignore[assignment]  # a server is given kinds of one sort
        return kind

    @property
    def _keeps_book(self) -> bool:
        """Whether a change of an object does not say if the reader knew it."""
        return self.kind.follows or not self.options.selection.everything

    def begin(self) -> int:
        """In a thread: the version to go on from.

        Where the reader has a list of before, head and objects are read at one moment: a deletion committed between them
        would be later than the head, and of an object that was never known, so that no event would be sent for it.
        """
        with repeatable_read():
            return self._begin()

    def _begin(self) -> int:
        options = self.options
        self.old = journal.tip()
        version = options.since if options.since and not options.initial else journal.head()
        if version < journal.floor():
            raise _too_old(version)
        if version > self.old:
            raise too_large(version, self.old)
        if self._keeps_book and not options.whole:
            self.known.update(line["metadata"]["uid"] for line in self._selected(self.kind.lines))
        return version

    def pieces(self, frame: Frame) -> Iterator[bytes]:
        """In a thread: what a reader without a list of before is sent first, and with it what it knows.

        Read after the head and not at its moment: what changes meanwhile is later than the head, so it is sent once more, and
        what is gone before it was read was never known.
        """
        objects, kept = self._selected(self.kind.objects), 0
        while chunk := list(islice(objects, _PIECE)):
            if self._keeps_book:
                self.known.update(shown["metadata"]["uid"] for shown in chunk)
            if kept < FIRST:
                self.last_known.see(self.kind, chunk)
                kept += len(chunk)
            yield frame(Event("ADDED", shown) for shown in chunk)

    def _selected(self, read: Callable[..., Iterator[Object]]) -> Iterator[Object]:
        objects = read(self.options.namespaces, None, self.options.selection.exact)
        return (shown for shown in objects if self.options.selection.takes(shown))

    def event(self, change: Change) -> Event | None:
        namespaces, home = self.options.namespaces, self.kind.home(change.namespace, change.name)
        if namespaces is not None and home and home not in namespaces:
            return None
        shown = change.shown or self._remains(change)
        now = change.action is not journal.Action.DELETED and self.options.selection.takes(shown)
        was = self._was_known(change)
        if not now and not was and not self._may_have_been(change, shown):
            return None
        if self._keeps_book:
            (self.known.add if now else self.known.discard)(change.uid)
        if change.last is not None:
            shown = {**change.last, "metadata": {**change.last["metadata"], "resourceVersion": str(change.version)}}
        return Event("MODIFIED" if was and now else "ADDED" if now else "DELETED", shown, change.encoded)

    def _was_known(self, change: Change) -> bool:
        """Whether the reader knew the object: one that is new since the version it began with was not in its list."""
        new = change.action is journal.Action.ADDED
        if not self._keeps_book:
            return not new
        unlisted = new and not self.options.whole and not self.kind.follows
        return change.uid in self.known and not unlisted

    def _may_have_been(self, change: Change, shown: Object) -> bool:
        """Whether the reader may know, from a list of before this watch, what no longer exists or no longer matches.

        An event for an object it never knew does no harm; no event for one it knew would.
        """
        gone = change.action is journal.Action.DELETED or not self.kind.follows
        return gone and not change.guessed and change.version <= self.old and self.options.selection.may_take(shown)

    def _remains(self, change: Change) -> Object:
        """The names of an object that is gone."""
        resource = self.kind.served.resource
        version = str(change.version)
        metadata = {"name": change.name, "namespace": change.namespace, "uid": change.uid, "resourceVersion": version}
        kept = {key: value for key, value in metadata.items() if value}
        return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": kept}


def _too_old(version: int) -> KubeError:
    return expired(f"too old resource version: {version}")
