"""Supply as the doors show it: each answer in a number of queries that does not grow with what it shows."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from django.db.models import Q, QuerySet

from fleet.models import Cluster, Event, Hold, Node

Totals = dict[str, dict[str, int]]
"""``{resource: {allocatable, requested, held, free}}`` in whole units."""


ABOUT: dict[str, Callable[[str], Q]] = {}
"""``cluster``, ``queue`` -> which events are about demand there; demand says so itself when it starts."""


def events_of(rows: QuerySet[Event], scope: str, name: str) -> QuerySet[Event]:
    """What happened to a cluster itself, and to what is in a cluster or a queue now."""
    about = ABOUT[scope](name)
    if scope != "cluster":
        return rows.filter(about)
    return rows.filter(about | Q(regarding_kind="Cluster", regarding_name=name) | Q(source=source_of(name)))


def source_of(cluster: str) -> str:
    """The source of events about objects in a member that no row here stands for."""
    return f"cluster {cluster}"[:63]


@dataclass(slots=True)
class Capacity:
    """A cluster's nodes together. Amounts are those of usable nodes: ready, and not cordoned in the member."""

    nodes: int = 0
    usable_nodes: int = 0
    resources: Totals = field(default_factory=dict)


def clusters() -> QuerySet[Cluster]:
    """Without the credentials, which no door shows and which cost a decryption each."""
    return Cluster.objects.defer("access")


def capacities(cluster_ids: Iterable[int]) -> dict[int, Capacity]:
    """Of every cluster asked for, in two queries. Free is what the nodes have left, less what is held."""
    capacities_by_cluster = {pk: Capacity() for pk in cluster_ids}
    nodes = Node.objects.filter(cluster_id__in=capacities_by_cluster).order_by()
    fields = ("cluster_id", "ready", "unschedulable", "allocatable", "requested")
    for pk, ready, unschedulable, allocatable, requested in nodes.values_list(*fields).iterator():
        capacity = capacities_by_cluster[pk]
        capacity.nodes += 1
        if ready and not unschedulable:
            capacity.usable_nodes += 1
            _add(capacity.resources, allocatable, requested)
    for pk, held in _held(capacities_by_cluster).items():
        for resource, amount in held.items():
            if total := capacities_by_cluster[pk].resources.get(resource):
                total["held"] = amount
                total["free"] = max(0, total["free"] - amount)
    return capacities_by_cluster


def _add(totals: Totals, allocatable: Mapping[str, int], requested: Mapping[str, int]) -> None:
    for resource, amount in allocatable.items():
        total = totals.setdefault(resource, {"allocatable": 0, "requested": 0, "held": 0, "free": 0})
        asked = requested.get(resource, 0)
        total["allocatable"] += amount
        total["requested"] += asked
        total["free"] += max(0, amount - asked)


def _held(cluster_ids: Iterable[int]) -> dict[int, dict[str, int]]:
    held: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    holds = Hold.objects.filter(cluster_id__in=list(cluster_ids), released_at=None)
    for pk, amounts in holds.values_list("cluster_id", "amounts"):
        for resource, amount in amounts.items():
            held[pk][resource] += amount
    return held
