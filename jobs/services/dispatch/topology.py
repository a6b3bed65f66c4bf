"""Writes into a copy what was decided about where its pods go: ranks in the order of switches, and a required domain.

Read from the binding of the attempt that is sent, so a copy that is sent again is written again alike. What the member's
scheduler makes of ranks is its own affair; a required domain it keeps, for it is written as what every scheduler knows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fleet.db import prepared
from fleet.db.prepared import KEY, NUMBER
from fleet.member.client import MemberClient
from fleet.models import Cluster, Node
from jobs.core.gang import requirements
from jobs.core.gang.requirements import HOSTNAME, TopologyConstraint
from jobs.core.topology import network
from jobs.kinds import ranks
from jobs.kinds.base import Kind, Manifest
from jobs.models import Binding, Job, Work
from jobs.services.dispatch import gpu_sets
from jobs.snapshot_topology import whereabouts


def placement(job: Job, attempt: int) -> dict[str, Any]:
    """What is kept of where this attempt was placed; empty when no nodes were chosen."""
    return next((found or {} for (found,) in _PLACEMENT.values(job=job.pk, attempt=attempt)), {})


_PLACEMENT = prepared.Rows(
    lambda param: Binding.objects.filter(job=param("job", KEY), attempt=param("attempt", NUMBER)).values_list(
        "placement"
    )
)


def write(client: MemberClient, kind: Kind, body: Manifest, job: Job, work: Work) -> None:
    """Into ``body``, in place. Nothing for a gang on nodes that report neither their place nor their links."""
    found = placement(job, work.attempt)
    within = within_of(job.roles)
    if within.required and found and (nodes := _names(found)):
        key, values = _pin(work.cluster, within, found["shared"], nodes)
        ranks.pin(kind, body, key, values)
    sets = gpu_sets.decide_gpu_sets(client, job, work.attempt, work.cluster) if found else {}
    if found.get("switches") or sets:
        ranks.write(kind, body, found["nodes"])
        ranks.write_gpus(kind, body, found["nodes"], sets)


def within_of(roles: Sequence[Mapping[str, Any]]) -> TopologyConstraint:
    demand = requirements.of_stored(roles)
    return demand.within if demand else TopologyConstraint()


def _names(found: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(node for runs in found["nodes"].values() for node, _ in runs))


def _pin(
    cluster: Cluster, within: TopologyConstraint, shared: Mapping[str, str], nodes: Sequence[str]
) -> tuple[str, list[str]]:
    """The label and its values that hold the domain: its own label where nodes have one, else the names of its nodes."""
    level = within.level if within.level is not None else max(map(network.LEVELS.index, shared), default=-1)
    name = network.LEVELS[level] if level >= 0 else ""
    where = whereabouts()
    rows = {row.name: row for row in Node.objects.filter(cluster=cluster)}
    first = rows.get(nodes[0])
    if name not in shared or first is None:
        return HOSTNAME, sorted({_hostname(rows, each) for each in nodes})
    domain = where.domain(first)[: level + 1]
    inside = [row for row in rows.values() if where.domain(row)[: level + 1] == domain]
    for key in where.labels_of(cluster.pk)[name]:
        same = {row.name for row in rows.values() if row.labels.get(key) == shared[name]}
        if same == {row.name for row in inside}:
            return key, [shared[name]]
    return HOSTNAME, sorted(_hostname(rows, row.name) for row in inside)


def _hostname(rows: Mapping[str, Node], name: str) -> str:
    row = rows.get(name)
    return str(row.labels.get(HOSTNAME, name)) if row else name
