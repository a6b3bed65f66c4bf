"""What the fleet knows beside its clusters: the namespaces in use, and events. All of it is read only."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from itertools import chain
from typing import Any

from django.db.models import QuerySet

from fleet.changes.journal import Action, Entry
from fleet.errors import invalid
from fleet.kube import names
from fleet.kube.discovery import Served
from fleet.kube.resources import EVENTS, NAMESPACES, SERVICES
from fleet.kube.server.kinds import BY_NAME, Exact, Key, Object, Write
from fleet.kube.tables import AGE, Column, age
from fleet.kubeapi.objects.kinds import Change, Kind, RowKind, stamp
from fleet.models import Event


class Namespaces(Kind):
    """A namespace is there as soon as something is in it: creating one is taken for what it announces, and said to be."""

    served = Served(NAMESPACES, ("ns",))
    verbs = ("create", "get", "list", "watch")
    follows = True
    columns = (Column("Status", lambda shown, now: "Active"), AGE)

    def __init__(self, sources: Iterable[Callable[[], Iterable[str]]]) -> None:
        self._sources = tuple(sources)

    def objects(self, namespaces: frozenset[str] | None, after: Key | None, exact: Exact) -> Iterator[Object]:
        name = exact.get(BY_NAME, "")
        found = {"default"}.union(*(source() for source in self._sources))
        for each in sorted(found):
            mine = namespaces is None or each in namespaces
            if mine and (not name or each == name) and (after is None or each > after[1]):
                yield _namespace(each)

    def home(self, namespace: str, name: str) -> str:
        return name

    def changes_in(self, entries: Sequence[Entry]) -> list[Change]:
        """Whatever changes in a namespace may be the first or the last thing that is in it."""
        last = {each.namespace: each for each in entries if each.namespace}
        there = {each["metadata"]["name"]: each for each in self.objects(None, None, {})} if last else {}
        return [
            Change(each.version, Action.MODIFIED if name in there else Action.DELETED, "", name, name, there.get(name))
            for name, each in last.items()
        ]

    def create(self, document: Object, write: Write) -> Object:
        name = document["metadata"].get("name")
        if detail := names.label_fault(name):
            raise invalid("metadata.name", detail)
        write.warnings.append(f"namespace {name} will be listed as soon as something is in it")
        return _namespace(name)


def _namespace(name: str) -> Object:
    labels = {"kubernetes.io/metadata.name": name}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": labels},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


class Services(Kind):
    """None: a fleet runs nothing itself. ``kubectl cluster-info`` asks which of them make up the cluster."""

    served = Served(SERVICES, ("svc",))

    def objects(self, namespaces: frozenset[str] | None, after: Key | None, exact: Exact) -> Iterator[Object]:
        return iter(())

    def changes_in(self, entries: Sequence[Entry]) -> list[Change]:
        return []


ABOUT = "involvedObject."
"""Field labels of what an event is about begin so."""


class Events(RowKind):
    """Timelines; the events of what lives in no namespace are in ``default``, as in Kubernetes."""

    served = Served(EVENTS, ("ev",))
    names_first = False
    verbs = ("get", "list", "watch")
    field_labels = frozenset(
        {*(f"{ABOUT}{part}" for part in ("apiVersion", "kind", "namespace", "name", "uid")), "reason", "type"}
    )
    indexed = {f"{ABOUT}{part}": f"regarding_{part}" for part in ("kind", "name", "uid")}
    columns = (
        Column("Last Seen", lambda shown, now: age(shown.get("lastTimestamp"), now)),
        Column("Type", lambda shown, now: shown.get("type", "")),
        Column("Reason", lambda shown, now: shown.get("reason", "")),
        Column("Object", lambda shown, now: _about(shown)),
        Column("Message", lambda shown, now: shown.get("message", "")),
    )

    def __init__(self, kinds: Iterable[Kind]) -> None:
        """Of the kinds an event may be about; a row knows only their names."""
        self._others: Sequence[Object] = ()
        self._versions = {each.name: each.served.resource.api_version for each in reversed(tuple(kinds))}

    def rows(self) -> QuerySet[Any]:
        return Event.objects.all()

    def with_others(self, others: Sequence[Object]) -> "Events":
        """The same, with these objects behind its own, for one list."""
        both = copy(self)
        both._others = others
        return both

    def objects(self, namespaces: frozenset[str] | None, after: Key | None, exact: Exact) -> Iterator[Object]:
        """Oldest first: their names are made here and end in their rows' keys."""
        columns = {field: column for field, column in self.indexed.items() if field in exact}
        rows = self.rows().order_by("pk").filter(**{column: exact[field] for field, column in columns.items()})
        rows = self._inside(rows, namespaces)
        if BY_NAME in exact:
            rows = rows.filter(pk=_row_of(exact[BY_NAME]))
        if after:
            rows = rows.filter(pk__gt=_row_of(after[1]))
        own = (self.render(row) for row in rows.iterator(chunk_size=self.chunk))
        names = [other["metadata"]["name"] for other in self._others]
        if after and (after[1] in names or not _row_of(after[1])):
            return (other for other in self._others if other["metadata"]["name"] > after[1])
        return chain(own, self._others)

    def count(self, namespaces: frozenset[str] | None) -> int:
        return super().count(namespaces) + len(self._others)

    def _inside(self, rows: QuerySet[Any], namespaces: frozenset[str] | None) -> QuerySet[Any]:
        if namespaces is None:
            return rows
        return rows.filter(regarding_namespace__in=namespaces | {""} if "default" in namespaces else namespaces)

    def render(self, row: Event) -> Object:
        about = {
            "apiVersion": self._versions.get(row.regarding_kind, ""),
            "kind": row.regarding_kind,
            "namespace": row.regarding_namespace,
            "name": row.regarding_name,
            "uid": row.regarding_uid,
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": row.object_name,
                "namespace": row.object_namespace,
                "uid": str(row.uid),
                "resourceVersion": "1",
                "creationTimestamp": stamp(row.first_at),
            },
            "involvedObject": {key: value for key, value in about.items() if value},
            "type": row.type,
            "reason": row.reason,
            "message": row.message,
            "source": {"component": row.source},
            "reportingComponent": row.source,
            "firstTimestamp": stamp(row.first_at),
            "lastTimestamp": stamp(row.last_at),
            "count": row.count,
        }


def _row_of(name: str) -> int:
    """0, which no row has, for a name that was not made here."""
    digits = name.rpartition(".")[2]
    return int(digits, 16) if len(digits) == 15 and set(digits) <= set("0123456789abcdef") else 0


def _about(shown: Object) -> str:
    about = shown.get("involvedObject")
    return f"{about['kind'].lower()}/{about['name']}" if about else ""


def namespaces_of(rows: QuerySet[Any], field: str = "namespace") -> Callable[[], Iterable[str]]:
    """The namespaces some rows are in."""
    return lambda: {each for each in rows.order_by().values_list(field, flat=True).distinct() if each}
