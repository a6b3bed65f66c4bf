"""What this door asks of a kind, and the base of those that are rows of a table.

A kind renders its rows as Kubernetes objects and hands every write to a service; it knows nothing of HTTP.
"""

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models import QuerySet

from fleet.changes import journal
from fleet.kube.discovery import Served
from fleet.kube.requests import status
from fleet.kube.requests.status import KubeError
from fleet.kube.schema import schemas, structural
from fleet.kube.schema.schemas import Schema
from fleet.kube.server import kinds, paths
from fleet.kube.server.kinds import BY_NAME, Exact, Key, Object, Write, method_not_allowed
from fleet.kube.writes import managed
from fleet.kubeapi.objects import owners
from fleet.services.authorization import access

_VERSION = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Change:
    """What an object was before is not known; of one that is gone, its names are."""

    version: int
    action: journal.Action
    namespace: str
    name: str
    uid: str
    shown: Object | None
    guessed: bool = False
    """It is not there and cannot have been in an earlier list: sent to the watches that knew it alone."""
    last: Object | None = None
    """What was last seen of an object that is gone, where anything was."""
    encoded: dict[Any, bytes] = field(default_factory=dict, compare=False)
    """The event as it is sent, by its form: many watches send the same."""

    def versioned(self) -> "Change":
        """With the version of the change on the object."""
        if self.shown is None:
            return self
        metadata = {**self.shown["metadata"], "resourceVersion": str(self.version)}
        return replace(self, shown={**self.shown, "metadata": metadata})


class Kind(kinds.Kind):
    """One kind of the fleet's API."""

    verbs: tuple[str, ...] = ("get", "list", "watch")
    read_verb = access.READ
    """What a caller must be allowed in order to read."""
    follows = False
    """Whether its objects come and go with those of other kinds, so that an update of one does not say whether it is new."""

    @property
    def kept(self) -> Schema:
        """The schema whose unknown fields are dropped before an object is stored; this one drops none."""
        return schemas.ANY

    @cached_property
    def shown(self) -> Served:
        """With a status, where it has one, that is only read."""
        served = super().shown
        if "status" not in self.schema.fields:
            return served
        return replace(served, subresources=("status", *served.subresources), only_read=("status",))

    def home(self, namespace: str, name: str) -> str:
        """The namespace whose readers may read an object."""
        return namespace

    def of_uids(self, uids: Iterable[str]) -> dict[str, Object]:
        """The objects with these uids that are there now: what a watch shows of a change."""
        raise method_not_allowed()

    def changes_in(self, entries: Sequence[journal.Entry]) -> list[Change]:
        """What these lines of the journal mean for objects of this kind, oldest first: each once, as it is now."""
        groups = ("", f"{self.served.resource.group}/")
        last = {each.object_uid: each for each in entries if each.kind == self.name and each.group in groups}
        fresh = {each.object_uid for each in entries if each.action == journal.Action.ADDED}
        there = [uid for uid, each in last.items() if each.action != journal.Action.DELETED]
        shown = self.of_uids(there) if there else {}
        changes = []
        for uid, entry in sorted(last.items(), key=lambda each: each[1].version):
            action = journal.Action(entry.action)
            if action is not journal.Action.DELETED:
                if uid not in shown:
                    continue
                action = journal.Action.ADDED if uid in fresh else action
            changes.append(Change(entry.version, action, entry.namespace, entry.name, uid, shown.get(uid)))
        return changes

    def managed(self, objects: Sequence[Object]) -> list[Object]:
        return owners.shown(objects)

    def written(self, stored: Object) -> Object:
        """Without the status, which is what the fleet and its clusters report."""
        return {key: value for key, value in stored.items() if key != "status"}

    def admitted(self, document: Object, write: Write) -> Object:
        pruned: Object = structural.pruned(self.kept, document)
        return pruned

    def has_changed(self, current: Object, version: str) -> bool:
        """An event carries the journal's version, which may be newer than the row's."""
        return not _VERSION.fullmatch(version) or int(version) < int(current["metadata"]["resourceVersion"])

    def not_allowed(self, verb: str, subresource: str = "") -> KubeError:
        if subresource == "status":
            why = "a status is written by the fleet alone, from what its clusters report"
            return method_not_allowed(why)
        return super().not_allowed(verb, subresource)

    def store(self, old: Object | None, new: Object, write: Write) -> Object:
        before = self.written(self.managed([old])[0]) if old else None
        shown = None
        if old is None:
            shown = self.create(new, write)
        else:
            self.update(new, write)
        shown = shown or self._current(str(new["metadata"].get("name")), write)
        # A client may edit the managers themselves, as kubectl does when an object changes to server-side apply.
        edited = new["metadata"].get("managedFields")
        written = managed.with_entries(self.written(shown), edited if isinstance(edited, list) else [])
        return owners.keep(shown, write.manage(before, written))

    def remove(self, current: Object, options: Object, write: Write) -> Object:
        metadata = current["metadata"]
        owners.forget(metadata["uid"])
        if self.delete(metadata["name"], write):
            return status.success(self.served.resource, metadata["name"], metadata["uid"])
        return self._current(metadata["name"], write)

    def _current(self, name: str, write: Write) -> Object:
        current = self.get(write.namespace, name)
        if current is None:
            raise status.not_found(self.served.resource, name)
        return current

    def create(self, document: Object, write: Write) -> Object | None:
        """Returns the object where it cannot be read by its name afterwards."""
        raise method_not_allowed()

    def update(self, document: Object, write: Write) -> None:
        """Replaces what is there; that it is there, and its version, were checked."""
        raise method_not_allowed()

    def delete(self, name: str, write: Write) -> bool:
        """True when it is gone already; False while something is left to wait for."""
        raise method_not_allowed()


Target = paths.Target[Kind]


class RowKind(Kind):
    """A kind whose objects are rows; says where the namespace and the name stand."""

    namespace_field = "namespace"
    name_field = "name"
    indexed: Mapping[str, str] = {}
    """Fields a selector may ask for that are columns as well."""
    chunk = 501
    """One more than the page kubectl asks for: whether there is another page is known from the same query."""

    @abstractmethod
    def rows(self) -> QuerySet[Any]:
        """Every row of this kind, with what rendering needs."""

    @abstractmethod
    def render(self, row: Any) -> Object: ...

    def objects(self, namespaces: frozenset[str] | None, after: Key | None, exact: Exact) -> Iterator[Object]:
        return self._walk(self.rows(), self.render, namespaces, after, exact)

    def _walk(
        self,
        rows: QuerySet[Any],
        render: Callable[[Any], Object],
        namespaces: frozenset[str] | None,
        after: Key | None,
        exact: Exact,
        fetch: Callable[[QuerySet[Any]], list[Any]] = list,
    ) -> Iterator[Object]:
        """Chunk by chunk, each found by index."""
        columns = {BY_NAME: self.name_field, **self.indexed}
        rows = self._inside(rows, namespaces)
        rows = rows.filter(**{columns[field]: value for field, value in exact.items() if field in columns})
        rows = rows.order_by(*self._order())
        while True:
            chunk = self._behind(rows, after, fetch) if after else fetch(rows[: self.chunk])
            for row in chunk:
                shown = render(row)
                after = (shown["metadata"].get("namespace", ""), shown["metadata"]["name"])
                yield shown
            if len(chunk) < self.chunk:
                return

    def of_uids(self, uids: Iterable[str]) -> dict[str, Object]:
        return {str(row.uid): self.render(row) for row in self.rows().filter(uid__in=list(uids))}

    def count(self, namespaces: frozenset[str] | None) -> int:
        return self._inside(self.rows(), namespaces).count()

    def _inside(self, rows: QuerySet[Any], namespaces: frozenset[str] | None) -> QuerySet[Any]:
        if namespaces is None or not self.served.resource.namespaced:
            return rows
        return rows.filter(**{f"{self.namespace_field}__in": namespaces})

    def _order(self) -> tuple[str, ...]:
        return (self.namespace_field, self.name_field) if self.served.resource.namespaced else (self.name_field,)

    def _behind(self, rows: QuerySet[Any], key: Key, fetch: Callable[[QuerySet[Any]], list[Any]] = list) -> list[Any]:
        """The next chunk: the rest of the key's namespace, then other namespaces, each found by index."""
        namespace, name = key
        later = {f"{self.name_field}__gt": name}
        if not self.served.resource.namespaced:
            return fetch(rows.filter(**later)[: self.chunk])
        chunk = fetch(rows.filter(**{self.namespace_field: namespace}, **later)[: self.chunk])
        if left := self.chunk - len(chunk):
            chunk += fetch(rows.filter(**{f"{self.namespace_field}__gt": namespace})[:left])
        return chunk


def stamp(moment: datetime) -> str:
    """Whole seconds, as Kubernetes writes them."""
    return f"{moment.isoformat(timespec='seconds')[:19]}Z"


def head(row: Any, **more: object) -> Object:
    """The metadata every row has; ``more`` goes in where it says something."""
    known = {
        "name": row.name,
        "namespace": getattr(row, "namespace", ""),
        "uid": str(row.uid),
        "resourceVersion": str(row.resource_version),
        "generation": getattr(row, "generation", None),
        **more,
    }
    return {key: value for key, value in known.items() if value not in ("", None, {})}
