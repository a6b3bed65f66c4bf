"""Writes the topology decisions for a gang into its copy: ranks in the order of network switches, and a required domain.

They are read from the binding of the attempt, so a copy that is sent again is the same. The member's scheduler may ignore the
ranks. It respects a required domain, which is written as a node selector or as node affinity.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fleet.core.members import marks
from fleet.db import prepared
from fleet.db.prepared import KEY, NUMBER
from fleet.kube.resources import CONFIG_MAPS, Resource
from fleet.member.client import MemberClient
from fleet.models import Cluster, Node
from jobs.core.gang import requirements
from jobs.core.gang.requirements import HOSTNAME, TopologyConstraint
from jobs.core.topology import network
from jobs.kinds import ranks
from jobs.kinds.base import Kind, Manifest
from jobs.models import Binding, Job, Work
from jobs.services.dispatch.copies import gpu_sets
from jobs.services.dispatch.members import member_objects
from jobs.snapshot_topology import whereabouts

_MARKS = (marks.FLEET, marks.JOB_UID, marks.ATTEMPT, marks.MANAGED_BY)


def placement(job: Job, attempt: int) -> dict[str, Any]:
    """The stored placement of the attempt. Empty when no nodes were chosen."""
    return next((stored or {} for (stored,) in _PLACEMENT.values(job=job.pk, attempt=attempt)), {})


_PLACEMENT = prepared.Rows(
    lambda param: Binding.objects.filter(job=param("job", KEY), attempt=param("attempt", NUMBER)).values_list(
        "placement"
    )
)


def write(client: MemberClient, kind: Kind, body: Manifest, job: Job, work: Work) -> dict[str, str]:
    """Changes ``body`` in place. Does nothing for a gang on nodes that report neither network location nor GPU links.

    Returns the lists of ranks, by role, that the pods expect from a ConfigMap (`hand_over`).
    """
    stored = placement(job, work.attempt)
    within = within_of(job.roles)
    if within.required and stored and (nodes := _node_names(stored)):
        key, values = _required_label(work.cluster, within, stored["shared"], nodes)
        ranks.pin(kind, body, key, values)
    sets = gpu_sets.decide_gpu_sets(client, job, work.attempt, work.cluster) if stored else {}
    if not (stored.get("switches") or sets):
        return {}
    lists = ranks.write(kind, body, stored["nodes"])
    ranks.write_gpus(kind, body, stored["nodes"], sets)
    return lists


def hand_over(
    client: MemberClient, author: MemberClient, copy: Manifest, resource: Resource, lists: Mapping[str, str], work: Work
) -> None:
    """Creates the ConfigMap with the lists, which leaves the member with the copy that owns it; its pods wait for it."""
    if not lists:
        return
    metadata = copy["metadata"]
    owner = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    own = {key: value for key, value in (metadata.get("labels") or {}).items() if key in _MARKS}
    body = {
        "apiVersion": "v1",
        "kind": CONFIG_MAPS.kind,
        "metadata": {
            "name": ranks.config_map_name(copy),
            "namespace": metadata["namespace"],
            "labels": own,
            "ownerReferences": [owner],
        },
        "data": dict(lists),
    }
    member_objects.create(client, CONFIG_MAPS, body, str(work.job_uid), work.attempt, author=author)


def within_of(roles: Sequence[Mapping[str, Any]]) -> TopologyConstraint:
    demand = requirements.of_stored(roles)
    return demand.within if demand else TopologyConstraint()


def _node_names(stored: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(node for runs in stored["nodes"].values() for node, _ in runs))


def _required_label(
    cluster: Cluster, within: TopologyConstraint, shared: Mapping[str, str], nodes: Sequence[str]
) -> tuple[str, list[str]]:
    """A node label and the values that select exactly the nodes of the domain: the domain's own label, else hostnames."""
    level = within.level if within.level is not None else max(map(network.LEVELS.index, shared), default=-1)
    name = network.LEVELS[level] if level >= 0 else ""
    where = whereabouts()
    rows = {row.name: row for row in Node.objects.filter(cluster=cluster)}
    first = rows.get(nodes[0])
    if name not in shared or first is None:
        return HOSTNAME, sorted({_hostname(rows, name) for name in nodes})
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
