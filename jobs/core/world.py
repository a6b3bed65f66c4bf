"""The scheduler's picture of the fleet at one moment: waiting gangs and what each cluster has left.

Built by `jobs.snapshot` from the database, changed only by `World.after`, which returns a new picture. Amounts are
whole units in int64 vectors over ``World.axis``; names become indices once, when the picture is made.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobs.core.policy import PolicySpec
from jobs.core.reasons import Amounts
from jobs.core.taints import Taint
from quotas.core import amounts
from quotas.core.ledger import Charge, Ledger

Vector = NDArray[np.int64]
"""Whole units, ``[resource]``."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Resource name ↔ index. A resource no cluster offers has no index: asking for it fits nowhere."""

    names: tuple[str, ...]
    index: Mapping[str, int]

    @classmethod
    def of(cls, names: Sequence[str]) -> "Axis":
        return cls(tuple(names), {name: i for i, name in enumerate(names)})

    def vector(self, amounts: Amounts) -> Vector:
        made = np.zeros(len(self.names), dtype=np.int64)
        for name, value in amounts.items():
            if value:
                made[self.index[name]] = value
        return made

    def known(self, amounts: Amounts) -> Vector:
        """Of these amounts what has an index."""
        return self.vector({name: value for name, value in amounts.items() if name in self.index})


@dataclass(frozen=True, slots=True)
class Gang:
    """A job that waits: everything the cycle may know of it."""

    job_id: int
    name: str
    """``namespace/name``, the last tie-breaker of the order."""
    api_version: str
    kind: str
    roles: tuple[tuple[str, int, Amounts], ...]
    """(role, replicas, one pod's request), in the kind's order."""
    total: Amounts
    priority: int
    queued_at: datetime
    policy: PolicySpec | None
    attempt: int = 0
    """The number of its latest attempt; with ``generation``, what a plan is checked against when it is applied."""
    generation: int = 1
    excluded: Mapping[str, datetime] = field(default_factory=dict)
    """Clusters it failed on, and until when they are out of the question."""
    leaf: str = ""
    """Its quota leaf; empty: none is its own."""
    leaf_fault: str = ""
    """Why the leaf it names is not its own."""
    preemptible: bool = True
    charged: bool = False
    """Its leaf is charged for it already: it moves, or its pods are not gone yet."""

    @property
    def asks_quota(self) -> bool:
        return bool(self.leaf) and not self.charged

    @property
    def charge(self) -> Charge:
        """What its leaf is charged when it is admitted."""
        return Charge(self.leaf, amounts.of_job(self.total), self.preemptible)

    @property
    def pods(self) -> int:
        return sum(replicas for _, replicas, _ in self.roles)


@dataclass(frozen=True, slots=True)
class Runner:
    """A job that its leaf is charged for and that has a place: who may be asked to leave it, or is leaving it."""

    job_id: int
    name: str
    charge: Charge
    priority: int
    started_at: datetime
    cluster: str
    total: Amounts
    attempt: int = 0
    pods: tuple[tuple[str, Amounts], ...] = ()
    """(node, one pod's request) of those that are bound."""
    leaves_for: int = 0
    """The job that is to have its place; 0: it stays, or leaves for nobody."""
    goes_to: str = ""
    """The cluster where that job is to go."""
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """A member as the placement sees it."""

    id: int
    name: str
    ready: bool
    cordoned: bool
    synced: bool
    labels: Mapping[str, str]
    places: Mapping[str, str]
    """provider, region, zone."""
    taints: tuple[Taint, ...]
    apis: Mapping[str, Any]
    nodes: NDArray[np.int64]
    """Free per schedulable node, ``[node, resource]``; may be negative where a member is over-committed by others."""
    capacity: Vector
    """Allocatable over schedulable nodes."""
    free: Vector
    """Free over schedulable nodes minus what is held."""

    def serves(self, api_version: str, kind: str) -> bool:
        return kind in self.apis.get(api_version, {})

    names: tuple[str, ...] = ()
    """Of ``nodes``, row by row."""

    def minus(self, asked: Vector) -> "Cluster":
        return replace(self, free=self.free - asked)

    def without(self, runner: Runner, axis: Axis) -> "Cluster":
        """The cluster once all pods of the runner are gone."""
        nodes = self.nodes.copy()
        for name, request in runner.pods:
            if name in self.names:
                nodes[self.names.index(name)] += axis.known(request)
        return replace(self, nodes=nodes, free=self.free + axis.known(runner.total))


@dataclass(frozen=True, slots=True)
class Closed:
    """A queue that admits nothing now."""

    path: str
    name: str
    state: str
    """Held, Draining or Stopped."""


@dataclass(frozen=True, slots=True)
class Quota:
    """The tree in force and what is charged. The ledger is counted on during a cycle, and afterwards as it was."""

    ledger: Ledger
    version: int
    """Of the tree: a plan made by another one is not applied."""
    closed: Mapping[str, Closed] = field(default_factory=dict)
    """The leaves that admit nothing, because of their own queue or one above it."""


@dataclass(frozen=True, slots=True)
class World:
    axis: Axis
    waiting: tuple[Gang, ...]
    clusters: tuple[Cluster, ...]
    quota: Quota | None = None
    """None: no tree, no quota."""
    leaving: tuple[Runner, ...] = ()
    """Those who make room; their leaves are charged until their pods are gone."""
    left: tuple[Runner, ...] = ()
    """Those who have made room, and wait again; what they gave back is kept for whom they left."""

    def after(self, cluster: str, asked: Vector) -> "World":
        """The same world with ``asked`` held on ``cluster``."""
        return replace(self, clusters=tuple(c.minus(asked) if c.name == cluster else c for c in self.clusters))

    def without(self, gone: Iterable[Runner]) -> "World":
        """The same world once these have left their clusters."""
        clusters = {cluster.name: cluster for cluster in self.clusters}
        for runner in gone:
            if runner.cluster in clusters:
                clusters[runner.cluster] = clusters[runner.cluster].without(runner, self.axis)
        return replace(self, clusters=tuple(clusters.values()))
