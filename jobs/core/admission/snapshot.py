"""The facts the scheduler decides from, as values: waiting gangs, who runs or leaves, clusters with nodes and promises.

Loaded by `jobs.snapshot`; a `jobs.core.scheduling.scheduler.Scheduler` takes them one by one or all at once. Amounts are
whole units.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jobs.core.gang.types import Gang, Promise, Runner
from jobs.core.placement.fragmentation_scorer import Usual
from jobs.core.placement.types import Member, NodeFacts
from jobs.core.policies.weights import Weights
from jobs.core.settings import CycleSettings
from quotas.core.ledger import Ledger

Vector = NDArray[np.int64]
"""Whole units, ``[resource]``."""


@dataclass(frozen=True, slots=True)
class Site:
    """A member with its nodes and what is promised there."""

    id: int
    member: Member
    nodes: tuple[NodeFacts, ...] = ()
    promises: tuple[Promise, ...] = ()


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
    waiting: tuple[Gang, ...]
    sites: tuple[Site, ...]
    quota: Quota | None = None
    """None: no tree, no quota."""
    leaving: tuple[Runner, ...] = ()
    """Those who make room; their leaves are charged until their pods are gone."""
    left: tuple[Runner, ...] = ()
    """Those who have made room, and wait again; what they gave back is kept for whom they left."""
    failures: Mapping[str, float] = field(default_factory=dict)
    """Recent failures by cluster, faded by time."""
    usual: Usual = ()
    """The usual mix of pods, by which nodes are chosen; empty: not known."""
    settings: CycleSettings = field(default_factory=CycleSettings)
    weights: Weights = field(default_factory=Weights)
    """Of the score, where a gang's policy states none."""
