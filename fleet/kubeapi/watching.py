"""What the journal means for one watch: which events its reader is sent, who knows objects only from a list and events.

The journal says that an object changed and not what it was, so what the reader knows is kept here where a change alone
does not say it. Every object and every change carries the journal's version.
"""

from dataclasses import dataclass, field

from fleet.changes import journal
from fleet.changes.repeatable_read import repeatable_read
from fleet.kube.requests.status import KubeError, expired
from fleet.kube.server.kinds import Object
from fleet.kube.server.lists import too_large
from fleet.kube.server.watching import Changes, Event, Frame, Opening, WatchOptions
from fleet.kubeapi.feed import Feed, InThread, Subscriber
from fleet.kubeapi.objects.kinds import Change, Kind


async def begin(options: WatchOptions, frame: Frame, feed: Feed, in_thread: InThread) -> Opening:
    view = View(options)
    version, first = await in_thread(view.begin, frame)
    return Opening(version, first, JournalChanges(view, feed, await feed.subscribe(view.kind, version)))


class JournalChanges(Changes):
    def __init__(self, view: "View", feed: Feed, subscriber: Subscriber) -> None:
        self._view, self._feed, self._subscriber = view, feed, subscriber

    def ended(self) -> bool:
        return self._subscriber.ended

    def error(self) -> KubeError | None:
        return _too_old(self._subscriber.seen) if self._subscriber.expired else None

    def take(self) -> tuple[list[Event], int]:
        changes, seen = self._subscriber.taken()
        events = (self._view.event(change) for change in changes)
        return [event for event in events if event], seen

    async def wait(self, seconds: float) -> None:
        await self._subscriber.wait(seconds)

    def close(self) -> None:
        self._feed.leave(self._subscriber)


@dataclass(slots=True)
class View:
    """What the reader of one watch knows."""

    options: WatchOptions
    known: set[str] = field(default_factory=set)
    """The uids of objects it was sent or, from its list, knows; kept only where a change does not say it."""
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

    def begin(self, frame: Frame) -> tuple[int, bytes]:
        """In a thread: the version to go on from, and the objects there are.

        Head and objects are read at one moment: a deletion committed between them would be later than the head, and of an
        object that was never known, so that no event would be sent for it.
        """
        with repeatable_read():
            return self._begin(frame)

    def _begin(self, frame: Frame) -> tuple[int, bytes]:
        options = self.options
        self.old = journal.tip()
        version = options.since if options.since and not options.initial else journal.head()
        if version < journal.floor():
            raise _too_old(version)
        if version > self.old:
            raise too_large(version, self.old)
        first = []
        if options.whole or self._keeps_book:
            for shown in self.kind.objects(options.namespaces, None, options.selection.exact):
                if options.selection.takes(shown):
                    self.known.update([shown["metadata"]["uid"]] if self._keeps_book else ())
                    first += [frame([Event("ADDED", shown)])] if options.whole else []
        return version, b"".join(first)

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
