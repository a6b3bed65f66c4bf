"""What a cluster has and has left, for many clusters in a fixed number of queries: nodes, amounts, jobs.

Counts as the scheduler does: nodes that are ready, schedulable and not excluded, minus what is held. How many
jobs a cluster has is asked through the reverse name of the jobs' own foreign key; fleet imports nothing of jobs.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from django.db.models import Count, Exists, OuterRef

from fleet.core import devices
from fleet.models import Cluster, Hold, Node, NodeExclusion
from fleet.services.clusters import node_exclusions

STARTING = ("Placed", "Dispatched")


@dataclass(slots=True)
class Supply:
    nodes: dict[str, int] = field(default_factory=lambda: {"total": 0, "ready": 0})
    capacity: dict[str, dict[str, int]] = field(default_factory=dict)
    jobs: dict[str, int] = field(default_factory=lambda: {"running": 0, "placed": 0})

    @property
    def gpus(self) -> dict[str, int]:
        """GPUs and other accelerators of all kinds together."""
        offered = {resource: row["allocatable"] for resource, row in self.capacity.items()}
        counted = {
            column: devices.count({resource: row[column] for resource, row in self.capacity.items()}, offered)
            for column in ("allocatable", "requested", "held")
        }
        return {**counted, "free": max(0, counted["allocatable"] - counted["requested"] - counted["held"])}

    def add(self, column: str, amounts: Mapping[str, int], times: int = 1) -> None:
        for resource, value in amounts.items():
            row = self.capacity.setdefault(resource, {"allocatable": 0, "requested": 0, "held": 0, "free": 0})
            row[column] += value * times


def attach(clusters: Iterable[Cluster]) -> list[Cluster]:
    """The same clusters, each with its ``supply``."""
    rows = list(clusters)
    supplies = supply_by_cluster([cluster.pk for cluster in rows])
    for cluster in rows:
        cluster.supply = supplies[cluster.pk]  # type: ignore[attr-defined]  # for the serializer
    return rows


def attach_exclusions(nodes: Iterable[Node], sees: Callable[[str], bool]) -> list[Node]:
    """The same nodes, each with its ``exclusion``, why it takes no pods of anybody, or None, and its ``job_exclusions``.

    ``sees`` says of whose namespaces the jobs are shown.
    """
    rows = list(nodes)
    known, of_jobs = node_exclusions.of_nodes(rows), node_exclusions.of_jobs_on(rows, sees)
    for node in rows:
        place = node.cluster_id, node.name
        node.exclusion = known.get(place)  # type: ignore[attr-defined]  # for the serializer
        node.job_exclusions = of_jobs.get(place, [])  # type: ignore[attr-defined]  # for the serializer
    return rows


def supply_by_cluster(cluster_ids: list[int]) -> dict[int, Supply]:
    supplies: dict[int, Supply] = defaultdict(Supply)
    excluded = NodeExclusion.objects.filter(
        cluster=OuterRef("cluster"), node=OuterRef("name"), job_uid=None, ended_at=None
    )
    nodes = Node.objects.filter(cluster_id__in=cluster_ids).order_by().annotate(excluded=Exists(excluded))
    # Thousands of nodes are a few kinds of nodes: what is alike in everything is counted by the database.
    columns = ("cluster_id", "ready", "unschedulable", "excluded", "allocatable", "requested")
    for cluster_id, ready, off, out, allocatable, requested, count in nodes.values_list(*columns).annotate(Count("pk")):
        supply = supplies[cluster_id]
        supply.nodes["total"] += count
        supply.nodes["ready"] += count * ready
        if ready and not off and not out:
            supply.add("allocatable", allocatable, count)
            supply.add("requested", {name: value for name, value in requested.items() if name in allocatable}, count)
    holds = Hold.objects.filter(cluster_id__in=cluster_ids, released_at__isnull=True)
    for cluster_id, amounts in holds.values_list("cluster_id", "amounts"):
        supplies[cluster_id].add("held", amounts)
    counted = Cluster.objects.filter(pk__in=cluster_ids, jobs_here__state__in=("Running", *STARTING)).order_by()
    for cluster_id, state, count in counted.values_list("pk", "jobs_here__state").annotate(Count("jobs_here")):
        if state == "Running":
            supplies[cluster_id].jobs["running"] += count
        else:
            supplies[cluster_id].jobs["placed"] += count
    for supply in supplies.values():
        for row in supply.capacity.values():
            row["free"] = max(row["allocatable"] - row["requested"] - row["held"], 0)
    return supplies
