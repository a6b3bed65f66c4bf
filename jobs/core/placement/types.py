"""Inputs of the placement engine (clusters, nodes) and its answer (an assignment): plain values without placement logic."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from fleet.core.prices import Prices
from jobs.core.gang.requirements import ANY_NAME, CLUSTER, HOSTNAME, NODE_NAME, GangRequirements, NodeClass
from jobs.core.placement.nodes.node_selection import Load
from jobs.core.taints import Taint
from jobs.core.topology import rank_assignment


class Mode(StrEnum):
    AGGREGATE = "Aggregate"
    NODE_FIT = "NodeFit"


@dataclass(frozen=True, slots=True)
class Member:
    """A cluster as the filters and the score see it; its nodes come one by one."""

    name: str
    ready: bool = True
    cordoned: bool = False
    synced: bool = True
    stale: str = ""
    """As of when its nodes are known, if that is too long ago."""
    labels: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    apis: Mapping[str, Any] = field(default_factory=dict)
    mode: Mode = Mode.NODE_FIT
    reserves: bool = False
    """Whether it is to hold a gang's capacity itself, unless the gang's policy says otherwise."""
    no_reservations: str = ""
    """Why it cannot; empty: it can."""
    prices: Prices = Prices()

    def serves(self, api_version: str, kind: str) -> bool:
        return kind in self.apis.get(api_version, {})


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One node as its cluster reports it. Amounts are whole units."""

    name: str
    allocatable: Mapping[str, int]
    requested: Mapping[str, int] = field(default_factory=dict)
    """Requested by all pods that are bound there, ours or not."""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    usable: bool = True
    domain: tuple[str, ...] = ()
    """Its place in the network, widest first: (psw, asw)."""
    excluded: str = ""
    """Until when and why it takes no new pods of anybody; empty: it is not excluded."""

    def kind(self, *, by_name: bool, cluster: str = "") -> NodeClass:
        """Its class; with its own name and cluster only if a gang asks for the node by name, or avoids it."""
        labels = dict(self.labels)
        labels[NODE_NAME] = self.name if by_name else ANY_NAME
        if by_name:
            labels[CLUSTER] = cluster
        if labels.get(HOSTNAME) == self.name and not by_name:
            labels[HOSTNAME] = ANY_NAME
        allocatable = tuple(sorted((name, amount) for name, amount in self.allocatable.items() if amount > 0))
        excluded = self.excluded if self.usable else ""
        return NodeClass(
            tuple(sorted(labels.items())), self.taints, allocatable, self.usable and not excluded, excluded
        )


@dataclass(frozen=True, slots=True)
class Assignment:
    """The whole gang on one cluster. Without loads (Aggregate) no node is promised, only the sum."""

    cluster: str
    mode: Mode
    demand: GangRequirements
    loads: tuple[tuple[tuple[int, ...], Load], ...] = ()
    """(indices of the parts that ask so, load)."""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    """Of its nodes, the place in the network where that is known."""

    def nodes(self) -> dict[str, list[str]]:
        """Per role, the node of each pod in index order: neighbours share a switch wherever they can."""
        streams: dict[tuple[int, ...], list[str]] = {}
        for parts, load in self.loads:
            streams.setdefault(parts, []).extend(name for name in load.names for _ in range(load.each))
        order = rank_assignment.order([name for names in streams.values() for name in names], self.where)
        nodes: dict[str, list[str]] = {}
        for parts, stream in streams.items():
            names = sorted(stream, key=order.__getitem__) if self.where else stream
            for i in parts:
                part = self.demand.parts[i]
                nodes[part.role], names = names[: part.replicas], names[part.replicas :]
        return nodes
