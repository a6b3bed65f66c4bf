"""Pods and nodes of members by the names they have at the fleet (`fleet.core.hub_names`); reads rows only."""

from typing import Any

from django.db.models import QuerySet

from fleet.core import hub_names
from fleet.core.hub_names import hub_name
from fleet.errors import InvalidInput
from fleet.models import Node, Pod

_FEW = 10
"""Clusters that are named in an error."""
_UNREAD = tuple(f"cluster__{field}" for field in ("access", "apis", "permissions", "labels", "annotations"))


class Ambiguous(InvalidInput):
    """A name that several clusters have."""

    status = 400
    title = "Ambiguous name"


def pods() -> QuerySet[Pod]:
    """With what is shown of their clusters."""
    return Pod.objects.select_related("cluster").defer(*_UNREAD)


def nodes() -> QuerySet[Node]:
    """With what is shown of their clusters."""
    return Node.objects.select_related("cluster").defer(*_UNREAD)


def pod_of(namespace: str, hub: str) -> Pod | None:
    """The pod with this name at the fleet."""
    pod: Pod | None = _of(pods().filter(namespace=namespace), hub)
    return pod


def node_of(hub: str) -> Node | None:
    """The node with this name at the fleet."""
    node: Node | None = _of(nodes(), hub)
    return node


def pod_meant(namespace: str, name: str) -> Pod | None:
    """The pod with this name at the fleet; else the only one that has it in its cluster. Raises Ambiguous where several do."""
    if (pod := pod_of(namespace, name)) is not None:
        return pod
    namesakes = list(pods().filter(namespace=namespace, name=name).order_by("cluster_id")[:_FEW])
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
    return next((row for row in candidates if hub_name(row.name, cluster) == hub), None)
