"""Hypothetical snapshots: without a cluster, with more nodes, with more waiting jobs. Pure; every function returns a new one.

A cycle run on it says what would start. The ledger is shared with the original snapshot, as a cycle restores it.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from jobs.core.admission.snapshot import ClusterState, Snapshot
from jobs.core.gang.types import CapacityHold, Gang
from jobs.core.placement.types import NodeFacts
from jobs.core.reasons import Amounts


def without_cluster(snapshot: Snapshot, name: str) -> Snapshot:
    return replace(snapshot, sites=tuple(site for site in snapshot.sites if site.member.name != name))


def without_node(
    snapshot: Snapshot, cluster: str, node: str, freed: Mapping[str, Amounts], gone: Container[str]
) -> Snapshot:
    """Without one node, and with less in use on others: ``freed`` by node, and the holds of the jobs with these uids."""

    def changed(site: ClusterState) -> ClusterState:
        if site.member.name != cluster:
            return site
        nodes = tuple(_with_freed(each, freed.get(each.name, {})) for each in site.nodes if each.name != node)
        return replace(site, nodes=nodes, holds=tuple(hold for hold in site.holds if not _is_of(hold, gone)))

    return replace(snapshot, sites=tuple(changed(site) for site in snapshot.sites))


def _with_freed(node: NodeFacts, freed: Amounts) -> NodeFacts:
    return replace(node, requested={name: max(0, used - freed.get(name, 0)) for name, used in node.requested.items()})


def _is_of(hold: CapacityHold, uids: Container[str]) -> bool:
    return isinstance(hold.key, tuple) and hold.key[0] in uids


def with_waiting(snapshot: Snapshot, gangs: Iterable[Gang]) -> Snapshot:
    return replace(snapshot, waiting=(*snapshot.waiting, *gangs))


def with_nodes(snapshot: Snapshot, name: str, count: int, offered: Amounts) -> Snapshot:
    """``count`` empty nodes more on the cluster."""
    more = tuple(NodeFacts(f"new-{i}", offered) for i in range(count))
    return replace(
        snapshot,
        sites=tuple(_with_more_nodes(site, more) if site.member.name == name else site for site in snapshot.sites),
    )


def _with_more_nodes(site: ClusterState, more: tuple[NodeFacts, ...]) -> ClusterState:
    return replace(site, nodes=(*site.nodes, *more))
