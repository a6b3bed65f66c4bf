"""What the fleet knows beside its clusters: events, and that it runs no services. All of it is read only."""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import chain
from typing import Any

from django.db.models import Max, QuerySet

from fleet.changes.journal import Entry
from fleet.kube.discovery import Served
from fleet.kube.resources import EVENTS, SERVICES
from fleet.kube.server.kinds import BY_NAME, Exact, Key, Object
from fleet.kube.tables import Column, age
from fleet.kubeapi.objects.kinds import Change, Kind, RowKind, stamp
from fleet.models import Event


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
        own = self._rows_behind(rows, _row_of(after[1]) if after else 0)
        names = [other["metadata"]["name"] for other in self._others]
        if after and (after[1] in names or not _row_of(after[1])):
            return (other for other in self._others if other["metadata"]["name"] > after[1])
        return chain(own, self._others)

    def _rows_behind(self, rows: QuerySet[Any], key: int) -> Iterator[Object]:
        """Chunk by chunk: a reader may pause between two, and the next one may be read in another thread.

        It ends at the newest row there was at the second chunk, however fast others come.
        """
        chunk = list(rows.filter(pk__gt=key)[: self.chunk])
        yield from map(self.render, chunk)
        if len(chunk) == self.chunk:
            rows = rows.filter(pk__lte=self.rows().aggregate(newest=Max("pk"))["newest"] or 0)
        while len(chunk) == self.chunk:
            chunk = list(rows.filter(pk__gt=chunk[-1].pk)[: self.chunk])
            yield from map(self.render, chunk)

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
