"""A cache of one kind in one API server, kept by list + watch, that notifies its listeners of changes.

Survives an API server that goes away (it lists again), a compacted watch (410) and its own writes racing the watch
(`learn` takes the newer of the two, and never brings back what was deleted). Knows no kind's meaning.
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
"""Called with ADDED, MODIFIED or DELETED and the object; must be quick, and must not change the object."""

WATCH_S = 300
GRAVES = 10_000
"""Deleted uids remembered: more than can be deleted while one answer is on its way."""


class Informer:
    def __init__(self, client: MemberClient, resource: Resource, stop: threading.Event) -> None:
        self._client = client
        self._resource = resource
        self._stop = stop
        self._listeners: list[Listener] = []
        self._objects: dict[str, Object] = {}
        self._owned: dict[str, set[str]] = {}
        self._graves: OrderedDict[str, None] = OrderedDict()
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
        """Takes the answer of our own write, so that the next decision does not rest on an older picture."""
        with self._lock:
            if uid_of(obj) not in self._graves:
                self._keep(obj)

    def learn_if_object(self, answer: Object) -> None:
        """Takes the answer of a delete: the object on its way out, or only a Status, which teaches nothing."""
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
            self._tell(kind, obj)
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
        self._tell(kind, obj)

    def _replace(self, items: list[Object], version: int) -> Iterator[tuple[str, Object]]:
        listed = {key_of(item): item for item in items}
        with self._lock:
            before = dict(self._objects)
            for key, old in before.items():
                new = listed.get(key)
                gone = new is None and version_of(old) <= version
                if gone or (new is not None and uid_of(new) != uid_of(old)):
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
        self._graves[uid_of(obj)] = None
        while len(self._graves) > GRAVES:
            self._graves.popitem(last=False)
        known = self._objects.get(key)
        if known is None or uid_of(known) != uid_of(obj):
            return
        del self._objects[key]
        owner = owner_of(known)
        if owner:
            mates = self._owned.get(owner["uid"], set())
            mates.discard(key)
            if not mates:
                self._owned.pop(owner["uid"], None)

    def _tell(self, kind: str, obj: Object) -> None:
        for listener in self._listeners:
            listener(kind, obj)
