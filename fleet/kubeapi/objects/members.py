"""What pods and nodes of members have in common as objects of the fleet: rows with a cluster, in lists and watches.

They are read only, their names end in their cluster's (`fleet.core.members.hub_names`), and what a silent member had is shown
as it was seen last, with that moment as an annotation.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from django.db.models import Q, QuerySet

from fleet.changes import journal
from fleet.changes.journal import Action, Entry
from fleet.core.members import hub_names
from fleet.kube.requests.status import expired
from fleet.kube.server.kinds import BY_NAME, LABEL, Exact, Key, Object
from fleet.kube.tables import Column
from fleet.kubeapi.objects.kinds import Change, Kind, stamp
from fleet.models import Cluster
from fleet.services.members.member_objects import with_clusters

CLUSTER = "convoy.dev/cluster"
"""Label and annotation: the cluster."""
NAME = "convoy.dev/name"
"""Annotation: the name in the cluster."""
AS_OF = "convoy.dev/shown-as-of"
"""Annotation: the moment after which nothing is known of the object; only while its cluster is silent."""
CHUNK = 501
"""One more than the page kubectl asks for: whether there is another page is known from the same query."""
_MOST = 5000
"""Objects of changed clusters that one look at the journal sends to watches; the others are as they were until they change."""
CLUSTER_COLUMN = Column("Cluster", lambda shown, now: (shown["metadata"].get("labels") or {}).get(CLUSTER, ""))


class MemberKind(Kind):
    """Rows of members in the order of an index."""

    order: tuple[str, ...]

    @abstractmethod
    def rows(self) -> QuerySet[Any]:
        """Every row."""

    @abstractmethod
    def render(self, row: Any) -> Object:
        """The object without a version."""

    def complete(self, rows: Iterable[Any]) -> Iterable[Any]:
        """The rows with what is shown of them and kept elsewhere."""
        return rows

    @abstractmethod
    def position(self, key: Key) -> Sequence[object]:
        """The values of the row with this key in the columns of the order."""

    def select(self, rows: QuerySet[Any], exact: Exact) -> QuerySet[Any]:
        """The rows that may have these fields."""
        if BY_NAME in exact:
            rows = rows.filter(named(exact[BY_NAME]) | Q(name=exact[BY_NAME]))
        return rows.filter(cluster__name=exact[LABEL + CLUSTER]) if LABEL + CLUSTER in exact else rows

    def inside(self, namespaces: frozenset[str] | None) -> QuerySet[Any]:
        return self.rows()

    def objects(self, namespaces: frozenset[str] | None, after: Key | None, exact: Exact) -> Iterator[Object]:
        """Chunk by chunk, each found by index. The version is asked for before the rows: they are of then, or newer."""
        version = journal.head()
        rows, clusters = self.select(self.inside(namespaces), exact).order_by(*self.order), dict[int, Cluster]()
        position = self.position(after) if after else None
        while True:
            chunk = list(rows[:CHUNK]) if position is None else list(islice(self._behind(rows, position), CHUNK))
            for row in self.complete(with_clusters(chunk, clusters)):
                yield at_version(self.render(row), version)
            if len(chunk) < CHUNK:
                return
            position = [getattr(chunk[-1], column) for column in self.order]

    def _behind(self, rows: QuerySet[Any], position: Sequence[object]) -> Iterator[Any]:
        """Rows behind the position: those that share most of it first, so that each query is a range of the index."""
        for depth in range(len(self.order), 0, -1):
            same = dict(zip(self.order[: depth - 1], position, strict=False))
            yield from rows.filter(**same, **{f"{self.order[depth - 1]}__gt": position[depth - 1]})[:CHUNK]

    def names_of(self, shown: Object) -> Sequence[str]:
        """Its name in the cluster as well: clients watch one object by the name they were called with."""
        metadata = shown["metadata"]
        notes = metadata.get("annotations") or {}
        return metadata["name"], notes.get(NAME) or hub_names.split(metadata["name"])[0]

    def count(self, namespaces: frozenset[str] | None) -> int:
        return self.inside(namespaces).count()

    def of_changed_clusters(self, entries: Iterable[Entry], but: Iterable[str]) -> list[Change]:
        """A cluster that falls silent, or is heard again, changes how its objects are shown."""
        last = {entry.object_uid: entry for entry in entries if entry.kind == Cluster.__name__}
        rows = self.rows().filter(cluster__uid__in=[uid for uid, e in last.items() if e.action != Action.DELETED])
        changes, known = [], set(but)
        for row in self.complete(with_clusters(rows[:_MOST], {})) if last else ():
            shown = self.render(row)
            metadata = shown["metadata"]
            if metadata["uid"] not in known:
                names = metadata.get("namespace", ""), metadata["name"], metadata["uid"]
                changes.append(Change(last[str(row.cluster.uid)].version, Action.MODIFIED, *names, shown))
        return changes


def at_version(shown: Object, version: int) -> Object:
    """The object at a version of the journal: its row has none of its own."""
    shown["metadata"]["resourceVersion"] = str(version)
    return shown


def named(hub: str, column: str = "name") -> Q:
    """The rows that may have this name at the fleet, or that name such an object in another column."""
    name, cluster = hub_names.split(hub)
    kept = hub_names.kept_of(hub)
    return Q(cluster__name=cluster, **({f"{column}__startswith": kept} if kept else {column: name}))


def cluster_id(name: str) -> int:
    """Raises 410 when the cluster has left: a page cannot begin behind its objects any more."""
    pk = Cluster.objects.filter(name=name).values_list("pk", flat=True).first()
    if pk is None:
        raise expired(f"the cluster {name}, at which the last page ended, has left the fleet: list again")
    return pk


def head_of(row: Any, uid: str, labels: Object) -> Object:
    """The metadata, without what only pods have."""
    notes = {CLUSTER: row.cluster.name, NAME: row.name}
    if as_of := silent_since(row.cluster):
        notes[AS_OF] = stamp(as_of)
    return {
        "name": hub_names.hub_name(row.name, row.cluster.name),
        "uid": uid,
        "labels": {**labels, CLUSTER: row.cluster.name},
        "annotations": notes,
    }


def silent_since(cluster: Cluster) -> datetime | None:
    """The moment after which nothing is known of what is in the cluster; None while it is seen."""
    if cluster.stale_since is not None:
        return cluster.stale_since
    if cluster.state == Cluster.State.READY:
        return None
    if cluster.state == Cluster.State.UNKNOWN and cluster.last_heartbeat is not None:
        return cluster.last_heartbeat
    return cluster.state_since


def silence_message(cluster: Cluster) -> str:
    since = silent_since(cluster)
    return f"cluster {cluster.name} does not answer; shown as of {stamp(since)}" if since else ""


def is_stale(shown: Object) -> bool:
    return AS_OF in (shown["metadata"].get("annotations") or {})
