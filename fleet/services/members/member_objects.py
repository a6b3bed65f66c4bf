"""Pods and nodes of members by the names they have at the fleet (`fleet.core.members.hub_names`); reads rows only."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from django.db.models import QuerySet

from fleet.core.members import hub_names
from fleet.core.members.hub_names import hub_name
from fleet.errors import InvalidInput
from fleet.models import Cluster, Node, Pod

_FEW = 10
"""Clusters that are named in an error."""
_UNREAD = ("access", "apis", "permissions", "labels", "annotations")
Row = TypeVar("Row", Pod, Node)


class Ambiguous(InvalidInput):
    """A name that several clusters have."""

    status = 400
    title = "Ambiguous name"


def with_clusters(rows: Iterable[Row], known: dict[int, Cluster]) -> Iterator[Row]:
    """The rows with what is shown of their clusters. Those that are not known yet are read at once, and known then."""
    rows = list(rows)
    if missing := {row.cluster_id for row in rows} - known.keys():
        known |= Cluster.objects.defer(*_UNREAD).in_bulk(missing)
    for row in rows:
        if (cluster := known.get(row.cluster_id)) is not None:  # one that has left meanwhile has taken its rows along
            row.cluster = cluster
            yield row


def pod_of(namespace: str, hub: str) -> Pod | None:
    """The pod with this name at the fleet."""
    pod: Pod | None = _of(Pod.objects.filter(namespace=namespace), hub)
    return pod


def node_of(hub: str) -> Node | None:
    """The node with this name at the fleet."""
    node: Node | None = _of(Node.objects.all(), hub)
    return node


def pod_meant(namespace: str, name: str) -> Pod | None:
    """The pod with this name at the fleet; else the only one that has it in its cluster. Raises Ambiguous where several do."""
    if (pod := pod_of(namespace, name)) is not None:
        return pod
    rows = Pod.objects.filter(namespace=namespace, name=name).order_by("cluster_id")
    namesakes = list(with_clusters(rows[:_FEW], {}))
    if len(namesakes) > 1:
        names = ", ".join(hub_name(pod.name, pod.cluster.name) for pod in namesakes)
        raise Ambiguous(f"pod {name} is in several clusters: name one of {names}")
    return namesakes[0] if namesakes else None


def _of(rows: QuerySet[Any], hub: str) -> Any:
    name, cluster = hub_names.split(hub)
    if not cluster:
        return None
    there, kept = rows.filter(cluster__name=cluster), hub_names.kept_of(hub)
    candidates = [*there.filter(name=name), *(there.filter(name__startswith=kept) if kept else ())]
    candidates = list(with_clusters(candidates, {}))
    return next((row for row in candidates if hub_name(row.name, cluster) == hub), None)
