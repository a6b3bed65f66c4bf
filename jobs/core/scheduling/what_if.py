"""Hypothetical snapshots: without a cluster, with more nodes, with more waiting jobs. Pure; every function returns a new one.

A cycle run on it says what would start. The ledger is shared with the original snapshot, as a cycle restores it.
"""

from collections.abc import Iterable
from dataclasses import replace

from jobs.core.admission.snapshot import ClusterState, Snapshot
from jobs.core.gang.types import Gang
from jobs.core.placement.types import NodeFacts
from jobs.core.reasons import Amounts


def without_cluster(snapshot: Snapshot, name: str) -> Snapshot:
    return replace(snapshot, sites=tuple(site for site in snapshot.sites if site.member.name != name))


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
