"""The facts the scheduler decides from, as values: waiting gangs, gangs being evicted, clusters with their nodes and holds.

Loaded by `jobs.snapshot`; a `jobs.core.scheduling.scheduler.Scheduler` takes them one by one or all at once. Amounts are
whole units.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jobs.core.gang.types import AdmittedGang, CapacityHold, Gang
from jobs.core.placement.nodes.fragmentation_scorer import Usual
from jobs.core.placement.types import Member, NodeFacts
from jobs.core.policies.weights import Weights
from jobs.core.settings import CycleSettings
from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.trees.tree import Tree


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A member with its nodes and the capacity held there."""

    id: int
    member: Member
    nodes: tuple[NodeFacts, ...] = ()
    holds: tuple[CapacityHold, ...] = ()


@dataclass(frozen=True, slots=True)
class Closed:
    """A queue that admits nothing now."""

    path: str
    name: str
    state: str
    """Held, Draining or Stopped."""
    spent: Mapping[str, Any] | None = None
    """Set if it is closed because the budget of its node is used up, as `quotas.models.Queue.spent`."""


@dataclass(frozen=True, slots=True)
class Quota:
    """The tree in force and what is charged. A cycle charges the ledger as it plans and restores it afterwards."""

    ledger: Ledger
    version: int
    """Version of the tree: a plan made with another one is not applied."""
    closed: Mapping[str, Closed] = field(default_factory=dict)
    """The leaves that admit nothing, because of their own queue or one above it."""
    modest: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The nodes that may borrow nothing, because their budget is used up; the tree of the ledger has their max at min."""
    stated: Tree | None = None
    """The tree as it is written, whatever windows are open and budgets are spent; None: the ledger's."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    waiting: tuple[Gang, ...]
    sites: tuple[ClusterState, ...]
    quota: Quota | None = None
    """None: no tree, no quota."""
    evicting: tuple[AdmittedGang, ...] = ()
    """Gangs being evicted; their leaves are charged until their pods are gone."""
    evicted: tuple[AdmittedGang, ...] = ()
    """Gangs that were evicted and wait again; what they freed is set aside for their preemptors."""
    failures: Mapping[str, float] = field(default_factory=dict)
    """Recent failures by cluster, faded by time."""
    usual: Usual = ()
    """The usual mix of pods, by which nodes are chosen; empty: not known."""
    settings: CycleSettings = field(default_factory=CycleSettings)
    weights: Weights = field(default_factory=Weights)
    """Of the score, where a gang's policy states none."""
    parts: tuple[AdmittedGang, ...] = ()
    """Pods that running gangs give back; what they free is set aside for their preemptors."""
    charges: Mapping[int, Charge] = field(default_factory=dict)
    """What the ledger is charged, by job; read only where the tree has windows."""
