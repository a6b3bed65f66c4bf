"""Watches of the simulated API server: history first, then changes as they come, with bookmarks, expiry and a time limit.

A watch that has nothing to send costs nothing: it sleeps until a change, its next bookmark, or `Watcher.wake`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from fleet.kube.status import expired
from simulator.apiserver.faults import Faults
from simulator.apiserver.lists import Wanted
from simulator.apiserver.store import Change, Kind, Object, Store

_BOOKMARK_S = 60.0
"""About as often as a real API server."""
_BACKLOG = 20_000
"""Changes a slow reader may be behind before its watch is ended."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What one request asked for."""

    kind: Kind
    api_version: str
    name_of_kind: str
    namespace: str
    wanted: Wanted
    since: int | None
    """None: begin with everything there is."""
    bookmarks: bool
    timeout_s: float
    shown: Callable[[Object], Object]
    """How an object is rendered in an event."""
    tells_all_first: bool = False
    """Everything there is comes first, and a bookmark that says so: what newer clients ask for instead of a list."""


def _line(kind: str, found: Object) -> bytes:
    return json.dumps({"type": kind, "object": found}, separators=(",", ":")).encode() + b"\n"


class Watcher:
    """One open watch. Registered with the store from before its first line to after its last."""

    def __init__(self, watch: Watch, store: Store, faults: Faults) -> None:
        self._watch = watch
        self._store = store
        self._faults = faults
        self._pending: list[bytes] = []
        self._ready = asyncio.Event()
        self._seen = store.version
        self._overrun = False

    async def lines(self) -> AsyncIterator[bytes]:
        """Encoded events, several joined where several are ready; b"" after a `wake` so that the caller can look around."""
        watch, loop = self._watch, asyncio.get_running_loop()
        if watch.since is not None and not watch.tells_all_first and watch.since < self._store.floor:
            yield _line("ERROR", expired(f"too old resource version: {watch.since} ({self._store.floor})").as_status())
            return
        self._store.listeners.add(self._hear)
        try:
            self._begin()
            end, bookmark = loop.time() + watch.timeout_s, loop.time() + _BOOKMARK_S
            while loop.time() < end and not self._overrun:
                if self._faults.stale_watch:
                    async for blank in self._stale():
                        yield blank
                    yield _line("ERROR", expired().as_status())
                    return
                yield self._flush()
                if watch.bookmarks and loop.time() >= bookmark:
                    bookmark = loop.time() + _BOOKMARK_S
                    yield self._bookmark()
                await self._wait((min(bookmark, end) if watch.bookmarks else end) - loop.time())
            yield self._flush() + (self._bookmark() if watch.bookmarks else b"")
        finally:
            self._store.listeners.discard(self._hear)

    def wake(self) -> None:
        """Makes `lines` look around: at its faults, and by the way of b"" its caller at the request. On the event loop."""
        self._ready.set()

    async def _stale(self) -> AsyncIterator[bytes]:
        # Cleared before the switch is read: a change in between is woken for, one from before is read.
        self._ready.clear()
        while self._faults.stale_watch and not self._faults.away:
            yield b""
            await self._wait(_BOOKMARK_S)
            self._ready.clear()

    async def _wait(self, seconds: float) -> None:
        """Until there is something to send or to look at, or the time is up. One timer: no task for each turn."""
        timer = asyncio.get_running_loop().call_later(max(seconds, 0), self._ready.set)
        try:
            await self._ready.wait()
        finally:
            timer.cancel()

    def _begin(self) -> None:
        watch = self._watch
        if watch.since is None or watch.tells_all_first:
            for found in self._store.of_kind(watch.kind, watch.namespace):
                if watch.wanted.takes(found):
                    self._pending.append(_line("ADDED", watch.shown(found)))
            if watch.tells_all_first:
                self._pending.append(self._bookmark({"k8s.io/initial-events-end": "true"}))
            return
        for change in self._store.history:
            if change.version > watch.since:
                self._take(change, {})

    def _hear(self, change: Change) -> None:
        self._take(change, self._store.shared)

    def _take(self, change: Change, encoded: dict[str, bytes]) -> None:
        watch = self._watch
        self._seen = change.version
        if change.kind != watch.kind:
            return
        if watch.namespace and change.after["metadata"].get("namespace") != watch.namespace:
            return
        was = change.before is not None and watch.wanted.takes(change.before)
        now = change.type != "DELETED" and watch.wanted.takes(change.after)
        if not was and not now:
            return
        kind = "MODIFIED" if was and now else "ADDED" if now else "DELETED"
        shown = watch.shown(change.after)
        if shown is not change.after:
            line = _line(kind, shown)
        elif (line := encoded.get(kind, b"")) == b"":
            line = encoded[kind] = _line(kind, shown)
        self._pending.append(line)
        self._overrun = len(self._pending) > _BACKLOG
        self._ready.set()

    def _flush(self) -> bytes:
        lines, self._pending = b"".join(self._pending), []
        self._ready.clear()
        return lines

    def _bookmark(self, notes: dict[str, str] | None = None) -> bytes:
        watch = self._watch
        metadata: Object = {"resourceVersion": str(self._seen), "creationTimestamp": None}
        if notes:
            metadata["annotations"] = notes
        return _line("BOOKMARK", {"kind": watch.name_of_kind, "apiVersion": watch.api_version, "metadata": metadata})
