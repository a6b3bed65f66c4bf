"""What objects were last, for as long as a watch of their kind is open here: a deletion is sent with the whole object.

The journal says what was deleted and not what it was, and its row is gone. Kept is what passes by (each change, as it is
rendered for all watches, and the first objects there are when a watch begins) up to a number of bytes. What was dropped, and
what this process never saw, is sent by its names alone.
"""

import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from fleet.kube.server.kinds import Exact, Object
from fleet.kube.server.request import encoded
from fleet.kubeapi.objects.kinds import Change, Kind

_BYTES = 16_000_000
FIRST = 500
"""Objects that are read when a watch begins: as many as kubectl shows on one page."""
_READ = 1000
"""Choices of first objects that are read, for one kind."""

_First = tuple[frozenset[str] | None, frozenset[tuple[str, str]]]


@dataclass
class _Kept:
    """Of one kind, as JSON by uid; what changed longest ago first."""

    objects: dict[str, bytes] = field(default_factory=dict)
    size: int = 0
    read: set[_First] = field(default_factory=set)

    def put(self, uid: str, written: bytes) -> None:
        self.drop(uid)
        self.objects[uid] = written
        self.size += len(written)

    def drop(self, uid: str) -> None:
        self.size -= len(self.objects.pop(uid, b""))


class LastKnown:
    """Used by many threads."""

    def __init__(self, room: int = _BYTES) -> None:
        self._room = room
        self._kinds: dict[Kind, _Kept] = {}
        self._lock = threading.Lock()

    def read_first(self, kind: Kind, namespaces: frozenset[str] | None, exact: Exact) -> None:
        """Once for all watches that ask for the same."""
        first = (namespaces, frozenset(exact.items()))
        with self._lock:
            read = self._kinds.setdefault(kind, _Kept()).read
            if first in read or len(read) >= _READ:
                return
            read.add(first)
        self.see(kind, islice(kind.objects(namespaces, None, exact), FIRST))

    def see(self, kind: Kind, objects: Iterable[Object]) -> None:
        """What is there; what came with a change is newer."""
        for shown in objects:
            if shown["metadata"]["uid"] not in self._kept(kind).objects:
                self._keep(kind, shown)

    def with_last(self, kind: Kind, changes: Sequence[Change]) -> list[Change]:
        """The changes, those of objects that are gone with what these were."""
        for change in changes:
            if change.shown is not None:
                self._keep(kind, change.shown)
        return [change if change.shown is not None else self._completed(kind, change) for change in changes]

    def forget(self, kind: Kind) -> None:
        """Without a watch of the kind, what is known of it grows old."""
        with self._lock:
            self._kinds.pop(kind, None)

    def _kept(self, kind: Kind) -> _Kept:
        return self._kinds.get(kind) or _Kept()

    def _completed(self, kind: Kind, change: Change) -> Change:
        last = self._kept(kind).objects.get(change.uid)
        return replace(change, last=json.loads(last)) if last else change

    def _keep(self, kind: Kind, shown: Object) -> None:
        written = encoded(shown)
        with self._lock:
            self._kinds.setdefault(kind, _Kept()).put(shown["metadata"]["uid"], written)
            self._make_room()

    def _make_room(self) -> None:
        while sum(each.size for each in self._kinds.values()) > self._room:
            largest = max(self._kinds.values(), key=lambda each: each.size)
            largest.drop(next(iter(largest.objects)))
