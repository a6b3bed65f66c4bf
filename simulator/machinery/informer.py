"""A cache of the objects of one kind, kept up to date by list and watch, which notifies its listeners of changes.

When the API server is unreachable, or a watch expires (410), it lists again. The controllers' own writes are added with
`learn`, which keeps the newer version and never restores a deleted object.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator

from fleet.kube.resources import Resource
from fleet.member.client import MemberClient, Object
from fleet.member.errors import MemberError, MemberExpired
from simulator.machinery.objects import key_of, owner_of, uid_of, version_of

log = logging.getLogger(__name__)

Listener = Callable[[str, Object], None]
"""Called with ADDED, MODIFIED or DELETED and the object. It must be quick, and must not change the object."""

WATCH_S = 300
TOMBSTONES = 10_000
"""How many deleted uids are remembered: more than can be deleted while a response is in transit."""


class Informer:
    def __init__(self, client: MemberClient, resource: Resource, stop: threading.Event) -> None:
        self._client = client
        self._resource = resource
        self._stop = stop
        self._listeners: list[Listener] = []
        self._objects: dict[str, Object] = {}
        self._owned: dict[str, set[str]] = {}
        self._tombstones: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()
        self.synced = threading.Event()
        self.thread = threading.Thread(target=self._run, name=f"informer-{resource.plural}", daemon=True)

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def get(self, key: str) -> Object | None:
        return self._objects.get(key)

    def all(self) -> list[Object]:
        with self._lock:
            return list(self._objects.values())

    def owned_by(self, uid: str) -> list[Object]:
        """The objects whose controller, or else first owner, has this uid, by name."""
        with self._lock:
            return [self._objects[key] for key in sorted(self._owned.get(uid, ()))]

    def learn(self, obj: Object) -> None:
        """Adds the response to one of our own writes, so that the next decision is not based on an older version."""
        with self._lock:
            if uid_of(obj) not in self._tombstones:
                self._keep(obj)

    def learn_if_object(self, answer: Object) -> None:
        """Adds the response to a delete if it is the object that is being deleted, not a Status."""
        if answer.get("kind") != "Status" and (answer.get("metadata") or {}).get("deletionTimestamp"):
            self.learn(answer)

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            try:
                version = self._list()
                failures = 0
                self._follow(version)
            except MemberExpired:
                continue
            except MemberError as e:
                failures += 1
                log.debug("%s: %s", self._resource.plural, e)
                self._stop.wait(min(0.1 * 2 ** min(failures, 5), 2.0))

    def _list(self) -> str:
        answer = self._client.list(self._resource.path())
        version = str((answer.get("metadata") or {}).get("resourceVersion") or "0")
        updates = list(self._replace(answer["items"], int(version)))
        self.synced.set()
        for kind, obj in updates:
            self._notify(kind, obj)
        return version

    def _follow(self, version: str) -> None:
        while not self._stop.is_set():
            for event in self._client.watch(self._resource.path(), resource_version=version, timeout_s=WATCH_S):
                if self._stop.is_set():
                    return
                version = str(event.object["metadata"]["resourceVersion"])
                if event.type != "BOOKMARK":
                    self._take(event.type, event.object)

    def _take(self, kind: str, obj: Object) -> None:
        with self._lock:
            if kind == "DELETED":
                self._drop(obj)
            else:
                self._keep(obj)
                obj = self._objects[key_of(obj)]
        self._notify(kind, obj)

    def _replace(self, items: list[Object], version: int) -> Iterator[tuple[str, Object]]:
        listed = {key_of(item): item for item in items}
        with self._lock:
            before = dict(self._objects)
            for key, old in before.items():
                new = listed.get(key)
                deleted = new is None and version_of(old) <= version
                if deleted or (new is not None and uid_of(new) != uid_of(old)):
                    self._drop(old)
                    yield "DELETED", old
            for key, new in listed.items():
                known = self._objects.get(key)
                self._keep(new)
                if known is None or version_of(known) != version_of(new):
                    yield ("ADDED" if known is None else "MODIFIED"), self._objects[key]

    def _keep(self, obj: Object) -> None:
        key = key_of(obj)
        known = self._objects.get(key)
        if known is not None and version_of(known) > version_of(obj):
            return
        if known is not None and uid_of(known) != uid_of(obj):
            self._drop(known)
        self._objects[key] = obj
        owner = owner_of(obj)
        if owner:
            self._owned.setdefault(owner["uid"], set()).add(key)

    def _drop(self, obj: Object) -> None:
        key = key_of(obj)
        self._tombstones[uid_of(obj)] = None
        while len(self._tombstones) > TOMBSTONES:
            self._tombstones.popitem(last=False)
        known = self._objects.get(key)
        if known is None or uid_of(known) != uid_of(obj):
            return
        del self._objects[key]
        owner = owner_of(known)
        if owner:
            siblings = self._owned.get(owner["uid"], set())
            siblings.discard(key)
            if not siblings:
                self._owned.pop(owner["uid"], None)

    def _notify(self, kind: str, obj: Object) -> None:
        for listener in self._listeners:
            listener(kind, obj)
