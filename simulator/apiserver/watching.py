"""The changes of the store for one watch: first from the history, then new ones as they occur.

A watch that has nothing to send costs nothing: it sleeps until a change, its next bookmark, or `StoreChanges.wake`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from fleet.kube.requests.status import KubeError, expired
from fleet.kube.server.watching import Changes, Event, Frame, Opening, WatchOptions
from simulator.apiserver.faults import Faults
from simulator.apiserver.objects.storage import StoredKind
from simulator.apiserver.objects.store import Change, Store

_LONGEST_WAIT_S = 10.0
_BACKLOG = 20_000
"""How many changes a slow reader may be behind before its watch is closed."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The conditions besides its reader that end a watch or delay it."""

    faults: Faults
    stopped: Callable[[], bool]
    wakers: set[Callable[[], None]] = field(default_factory=set)
    """Called when one of the other fields has changed."""


async def begin(
    options: WatchOptions, frame: Frame, kind: StoredKind, store: Store, surroundings: Surroundings
) -> Opening:
    """Raises Expired for a version that is no longer in the history."""
    if not options.whole and options.since < store.floor:
        raise expired(f"too old resource version: {options.since} ({store.floor})")
    changes = StoreChanges(options, kind, store, surroundings)
    with ExitStack() as undo:
        undo.callback(changes.close)
        version, first = store.version, frame(Event("ADDED", shown) for shown in changes.first)
        await changes.hold()
        undo.pop_all()
    return Opening(version, _whole(b"" if changes.ended() else first), changes)


async def _whole(lines: bytes) -> AsyncIterator[bytes]:
    yield lines


class StoreChanges(Changes):
    """The changes of one watch. Registered with the store until it is closed."""

    def __init__(self, options: WatchOptions, kind: StoredKind, store: Store, surroundings: Surroundings) -> None:
        self._options, self._kind, self._store, self._surroundings = options, kind, store, surroundings
        self._pending: list[Event] = []
        self._ready = asyncio.Event()
        self._seen = store.version
        self._expired = self._overrun = False
        selection = options.selection
        objects = kind.objects(options.namespaces, None, {}) if options.whole else ()
        self.first = [shown for shown in objects if selection.takes(shown)]
        for change in () if options.whole else store.history:
            if change.version > options.since:
                self._add(change, {})
        store.listeners.add(self._hear)
        surroundings.wakers.add(self.wake)

    def close(self) -> None:
        self._store.listeners.discard(self._hear)
        self._surroundings.wakers.discard(self.wake)

    def wake(self) -> None:
        """Makes `wait` return, so that the watch checks its conditions. Call it on the event loop."""
        self._ready.set()

    def _hear(self, change: Change) -> None:
        self._add(change, self._store.shared)

    def _add(self, change: Change, encoded: dict[object, bytes]) -> None:
        self._seen, namespaces = change.version, self._options.namespaces
        if change.kind != self._kind.key:
            return
        if namespaces is not None and change.after["metadata"].get("namespace") not in namespaces:
            return
        was = change.before is not None and self._options.selection.takes(change.before)
        now = change.type != "DELETED" and self._options.selection.takes(change.after)
        if was or now:
            event = "MODIFIED" if was and now else "ADDED" if now else "DELETED"
            self._pending.append(Event(event, self._kind.in_version(change.after), encoded))
            self._overrun = self._overrun or len(self._pending) > _BACKLOG
            self._ready.set()

    async def take(self) -> tuple[list[Event], int]:
        events, self._pending = self._pending, []
        self._ready.clear()
        return events, self._seen

    async def wait(self, seconds: float) -> None:
        await self._wait(seconds)
        await self.hold()

    async def _wait(self, seconds: float) -> None:
        """One timer: no task for each turn."""
        timer = asyncio.get_running_loop().call_later(max(seconds, 0), self._ready.set)
        try:
            await self._ready.wait()
        finally:
            timer.cancel()

    async def hold(self) -> None:
        """Whether the watch is stale: then no event is sent, and afterwards the watch has expired."""
        while self._surroundings.faults.stale_watch and not self._ends():
            self._expired = True
            # Cleared before the switch is read again: a change in between is woken for, one from before is read.
            self._ready.clear()
            if self._surroundings.faults.stale_watch:
                await self._wait(_LONGEST_WAIT_S)

    def ended(self) -> bool:
        return self._expired or self._overrun or self._ends()

    def error(self) -> KubeError | None:
        return expired() if self._expired else None

    def _ends(self) -> bool:
        return self._surroundings.faults.away or self._surroundings.stopped()
