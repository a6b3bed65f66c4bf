"""What this door asks of a kind, and the base of those that are rows of a table.

A kind renders its rows as Kubernetes objects and hands every write to a service; it knows nothing of HTTP.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from fleet import journal
from fleet.kube import builtin, schemas
from fleet.kube.discovery import Served
from fleet.kube.schemas import Schema
from fleet.kube.status import KubeError
from fleet.services import access

Object = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name: the order of lists, and what a page ends with."""
Exact = Mapping[str, str]
"""Fields by their paths, and what they must be."""
NAME = "metadata.name"

NOT_ALLOWED = KubeError(405, "the server does not allow this method on the requested resource")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of ``kubectl get``; a wide one only shows with ``-o wide``."""

    name: str
    read: Callable[[Object, datetime], object]
    wide: bool = False
    description: str = ""


@dataclass(slots=True)
class Write:
    """Who writes, when, in which namespace; warnings go back to the person."""

    by: str
    now: datetime
    namespace: str = ""
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Change:
    """``before`` is never known: only what is there now, or (deleted) what its name was."""

    version: int
    action: journal.Action
    namespace: str
    name: str
    uid: str
    shown: Object | None
    guessed: bool = False
    """It is not there and cannot have been in a list of before: told to those who knew it only."""
    encoded: dict[tuple[str, bool], bytes] = field(default_factory=dict, compare=False)
    """As it is sent, by event and whether in a table: many watches tell the same."""

    def versioned(self) -> "Change":
        """With the version of the change on the object."""
        if self.shown is None:
            return self
        metadata = {**self.shown["metadata"], "resourceVersion": str(self.version)}
        return replace(self, shown={**self.shown, "metadata": metadata})


class Kind(ABC):
    """One served kind."""

    served: Served
    verbs: tuple[str, ...] = ("get", "list", "watch")
    remedies: Mapping[str, str] = {}
    """What to do instead of a verb it does not take."""
    columns: tuple[Column, ...] = ()
    """Between NAME and the end; a kind without any shows its AGE."""
    names_first = True
    """Whether NAME is the first column."""
    field_labels: frozenset[str] = frozenset()
    """What ``--field-selector`` may ask for besides name and namespace."""
    read_verb = access.READ
    """What a caller must be allowed in order to read."""
    follows = False
    """Whether its objects come and go with those of other kinds, so that news of them says nothing of their being new."""

    @property
    def schema(self) -> Schema:
        """What its objects are made of; open where nobody wrote it down."""
        return builtin.schema(self.served.resource) or schemas.of_kind(self.served.document)

    @property
    def kept(self) -> Schema:
        """By this, fields nobody knows are dropped before an object is stored; by itself it drops none."""
        return schemas.ANY

    @property
    def name(self) -> str:
        return self.served.resource.kind

    @property
    def shown(self) -> Served:
        """As clients find it: with a status, where it has one, that nobody writes."""
        if "status" not in self.schema.fields:
            return self.served
        return replace(self.served, subresources=("status", *self.served.subresources), only_read=("status",))

    def home(self, namespace: str, name: str) -> str:
        """The namespace whose readers may read an object."""
        return namespace

    def not_allowed(self, verb: str) -> KubeError:
        remedy = self.remedies.get(verb)
        return KubeError(405, f"{NOT_ALLOWED.message}: {remedy}") if remedy else NOT_ALLOWED

    @abstractmethod
    def objects(self, namespaces: frozenset[str] | None, after: Key | None, exact: Exact) -> Iterator[Object]:
        """Those of the namespaces (None: of all), behind the key, with exactly these fields; in the order of their keys.

        Of the fields, a kind heeds its name and whatever else saves it work: whoever asks looks through them again.
        """

    def lines(self, namespaces: frozenset[str] | None, after: Key | None, exact: Exact) -> Iterator[Object]:
        """The same objects with no more of them than their columns and a selector read: most of `kubectl get`."""
        return self.objects(namespaces, after, exact)

    def count(self, namespaces: frozenset[str] | None) -> int:
        """How many `objects` gives."""
        return sum(1 for _ in self.objects(namespaces, None, {}))

    def of_uids(self, uids: Iterable[str]) -> dict[str, Object]:
        """The objects with these uids that are there now: what a watch shows of a change."""
        raise NOT_ALLOWED

    def changes_in(self, entries: Sequence[journal.Entry]) -> list[Change]:
        """What these lines of the journal mean for objects of this kind, oldest first: each once, as it is now."""
        groups = ("", f"{self.served.resource.group}/")
        last = {each.object_uid: each for each in entries if each.kind == self.name and each.group in groups}
        fresh = {each.object_uid for each in entries if each.action == journal.Action.ADDED}
        there = [uid for uid, each in last.items() if each.action != journal.Action.DELETED]
        shown = self.of_uids(there) if there else {}
        found = []
        for uid, entry in sorted(last.items(), key=lambda each: each[1].version):
            action = journal.Action(entry.action)
            if action is not journal.Action.DELETED:
                if uid not in shown:
                    continue
                action = journal.Action.ADDED if uid in fresh else action
            found.append(Change(entry.version, action, entry.namespace, entry.name, uid, shown.get(uid)))
        return found

    def create(self, document: Object, write: Write) -> Object | None:
        """What was made, where it cannot be read by its name afterwards."""
        raise NOT_ALLOWED

    def update(self, document: Object, write: Write) -> None:
        """Replaces what is there; its being there, and the version, were checked."""
        raise NOT_ALLOWED

    def delete(self, name: str, write: Write) -> bool:
        """True when it is gone already; False while something is left to wait for."""
        raise NOT_ALLOWED


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
    ) -> Iterator[Object]:
        """Chunk by chunk, each found by index."""
        columns = {NAME: self.name_field, **self.indexed}
        rows = self._inside(rows, namespaces)
        rows = rows.filter(**{columns[field]: value for field, value in exact.items() if field in columns})
        rows = rows.order_by(*self._order())
        while True:
            found = self._behind(rows, after) if after else list(rows[: self.chunk])
            for row in found:
                shown = render(row)
                after = (shown["metadata"].get("namespace", ""), shown["metadata"]["name"])
                yield shown
            if len(found) < self.chunk:
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

    def _behind(self, rows: QuerySet[Any], key: Key) -> list[Any]:
        """The next chunk: the rest of the key's namespace, then other namespaces, each found by index."""
        namespace, name = key
        later = {f"{self.name_field}__gt": name}
        if not self.served.resource.namespaced:
            return list(rows.filter(**later)[: self.chunk])
        found = list(rows.filter(**{self.namespace_field: namespace}, **later)[: self.chunk])
        if left := self.chunk - len(found):
            found += rows.filter(**{f"{self.namespace_field}__gt": namespace})[:left]
        return found


def stamp(moment: datetime) -> str:
    """Whole seconds, as Kubernetes writes them."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


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
