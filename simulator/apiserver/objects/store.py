"""The object store of a simulated member: in memory, written through to a SQLite file, with a history for watches.

Nothing acknowledged is lost when the process is killed, and the resource version never goes back: the write is in the file
(and so in the kernel's hands) before the caller hears of it. Stored objects are never changed in place. Knows no rule of
Kubernetes beyond versions and history; all of it runs on the server's one event loop.
"""

import json
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Object = dict[str, Any]
Kind = tuple[str, str]
"""(group, plural)."""
Key = tuple[str, str]
"""(namespace, name)."""

_HISTORY = 50_000
"""How many changes the history keeps. A watch that is further behind has to list again."""


@dataclass(frozen=True, slots=True)
class Change:
    """One write. ``before`` is None for a creation, ``after`` for a removal carries the removal's own version."""

    version: int
    kind: Kind
    type: str
    before: Object | None
    after: Object


class Store:
    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=OFF")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS objects (grp TEXT, plural TEXT, namespace TEXT, name TEXT, body TEXT,"
            " PRIMARY KEY (grp, plural, namespace, name))"
        )
        self._db.execute("CREATE TABLE IF NOT EXISTS version (value INTEGER)")
        self._objects: dict[Kind, dict[Key, Object]] = {}
        self._owned: dict[str, set[tuple[Kind, Key]]] = {}
        self.version = 1
        self.history: deque[Change] = deque(maxlen=_HISTORY)
        self.listeners: set[Callable[[Change], None]] = set()
        self.shared: dict[Any, bytes] = {}
        """Encodings of the newest change, shared by all watches."""
        self._load()
        self.floor = self.version
        """Changes up to this version are no longer in the history: a watch from an older version has expired."""

    def _load(self) -> None:
        for grp, plural, namespace, name, body in self._db.execute("SELECT * FROM objects"):
            document = json.loads(body)
            self._objects.setdefault((grp, plural), {})[(namespace, name)] = document
            self._index((grp, plural), (namespace, name), None, document)
        row = self._db.execute("SELECT value FROM version").fetchone()
        if row is None:
            self._db.execute("INSERT INTO version VALUES (1)")
        else:
            self.version = row[0]

    def close(self) -> None:
        self._db.close()

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        return self._objects.get(kind, {}).get((namespace, name))

    def of_kind(self, kind: Kind, namespace: str = "") -> Iterator[Object]:
        """The objects of a kind, ordered by namespace and name as in a list."""
        return self.at(self.version, kind, frozenset({namespace}) if namespace else None)

    def at(
        self, version: int, kind: Kind, namespaces: frozenset[str] | None, after: Key | None = None
    ) -> Iterator[Object]:
        """The objects of a version, behind the key, in the order of namespace and name."""
        objects = self._objects.get(kind, {}) if version >= self.version else self._former(version, kind)
        inside = (key for key in objects if namespaces is None or key[0] in namespaces)
        for key in sorted(key for key in inside if after is None or key > after):
            yield objects[key]

    def _former(self, version: int, kind: Kind) -> dict[Key, Object]:
        """The objects of an earlier version: the current ones with all later changes undone."""
        objects = dict(self._objects.get(kind, {}))
        for change in reversed(self.history):
            if change.version <= version:
                break
            if change.kind == kind:
                metadata = change.after["metadata"]
                key = metadata.get("namespace", ""), metadata["name"]
                if change.before is None:
                    objects.pop(key, None)
                else:
                    objects[key] = change.before
        return objects

    def owned_by(self, uid: str) -> list[tuple[Kind, Key]]:
        return sorted(self._owned.get(uid, ()))

    def kinds(self) -> list[Kind]:
        return list(self._objects)

    def put(self, kind: Kind, body: Object) -> Object:
        """Writes the object under a new resource version and returns it."""
        metadata = body["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        self.version += 1
        stored = {**body, "metadata": {**metadata, "resourceVersion": str(self.version)}}
        before = self._objects.setdefault(kind, {}).get(key)
        with self._db:
            self._db.execute("BEGIN")
            self._db.execute(
                "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)",
                (*kind, *key, json.dumps(stored, separators=(",", ":"))),
            )
            self._db.execute("UPDATE version SET value = ?", (self.version,))
        self._objects[kind][key] = stored
        self._index(kind, key, before, stored)
        self._notify(Change(self.version, kind, "MODIFIED" if before else "ADDED", before, stored))
        return stored

    def remove(self, kind: Kind, namespace: str, name: str) -> Object | None:
        before = self._objects.get(kind, {}).get((namespace, name))
        if before is None:
            return None
        self.version += 1
        with self._db:
            self._db.execute("BEGIN")
            self._db.execute(
                "DELETE FROM objects WHERE grp = ? AND plural = ? AND namespace = ? AND name = ?",
                (*kind, namespace, name),
            )
            self._db.execute("UPDATE version SET value = ?", (self.version,))
        del self._objects[kind][(namespace, name)]
        self._index(kind, (namespace, name), before, None)
        last = {**before, "metadata": {**before["metadata"], "resourceVersion": str(self.version)}}
        self._notify(Change(self.version, kind, "DELETED", before, last))
        return last

    def _index(self, kind: Kind, key: Key, before: Object | None, after: Object | None) -> None:
        for owner in (before or {}).get("metadata", {}).get("ownerReferences") or []:
            self._owned.get(owner["uid"], set()).discard((kind, key))
        for owner in (after or {}).get("metadata", {}).get("ownerReferences") or []:
            self._owned.setdefault(owner["uid"], set()).add((kind, key))

    def _notify(self, change: Change) -> None:
        if len(self.history) == self.history.maxlen:
            self.floor = self.history[0].version
        self.history.append(change)
        self.shared = {}
        for listener in tuple(self.listeners):
            listener(change)

    def forget(self) -> None:
        """Drops the history, like a server that compacts it: every older watch has to list again."""
        self.history.clear()
        self.floor = self.version
