"""What a cycle decides, as values: which gang is placed where, which waits and why. The services write it to the database."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from jobs.core.gang.types import CapacityHold, Gang
from jobs.core.placement.types import Assignment
from jobs.core.reasons import Reason, Verdict
from quotas.core.queues.admission import BeforeWindow


@dataclass(frozen=True, slots=True)
class Placement:
    """A place for the whole gang, or for one share of a job that is divided."""

    cluster_id: int
    assignment: Assignment
    verdicts: tuple[Verdict, ...]
    """Every cluster looked at, the chosen one first."""
    others: tuple["Placement", ...] = ()
    """Where the other shares go."""

    @property
    def cluster(self) -> str:
        return self.assignment.cluster

    def hold(self, key: object) -> CapacityHold:
        """The capacity held from now on, under ``key``; on nodes by name where nodes were chosen."""
        nodes = []
        for parts, load in self.assignment.loads:
            request = self.assignment.demand.parts[parts[0]].ask.request
            nodes.append(({name: amount * load.each for name, amount in request}, load.names))
        return CapacityHold(key, self.cluster, self.assignment.demand.total, tuple(nodes))

    @property
    def shares(self) -> tuple["Placement", ...]:
        """This placement and the others, in the order of their attempt numbers."""
        return self, *self.others

    @property
    def where(self) -> str:
        """The cluster, or the clusters of all shares, in words."""
        return ", ".join(share.cluster for share in self.shares)

    def holds(self, gang: Gang) -> Iterator[CapacityHold]:
        """The capacity the gang holds from now on: one hold per share, keyed by (job, attempt number)."""
        name: Hashable = gang.uid or gang.job_id
        for number, share in enumerate(self.shares, start=gang.attempt + 1):
            yield share.hold((name, number))

    @property
    def pods(self) -> int:
        return sum(part.replicas for part in self.assignment.demand.parts)


@dataclass(frozen=True, slots=True)
class Placed:
    gang: Gang
    placement: Placement
    before_window: BeforeWindow | None = None
    """The window at whose beginning it may be evicted; None: there is none."""

    @property
    def result(self) -> str:
        """As the seed prints it: ``{north:0,[{master 1} {worker 2}]}``; when it is divided, ``{north:3, south:2}``."""
        if self.placement.others:
            return f"{{{', '.join(f'{share.cluster}:{share.pods}' for share in self.placement.shares)}}}"
        roles = " ".join(f"{{{name} {replicas}}}" for name, replicas, _ in self.gang.roles)
        return f"{{{self.placement.cluster}:0,[{roles}]}}"


@dataclass(frozen=True, slots=True)
class Waits:
    gang: Gang
    reason: Reason


@dataclass(slots=True)
class Plan:
    placed: list[Placed] = field(default_factory=list)
    waits: list[Waits] = field(default_factory=list)
    """Gangs whose stored reason is to be rewritten; all others keep theirs."""
    preemptors: list[Gang] = field(default_factory=list)
    """Waiting gangs, in their order, for which preemption may be planned."""
    more: bool = False
    """Another run is needed: one plan places a limited number of gangs."""
    tree_version: int = 0
    """Version of the quota tree the plan was made with; 0: there was none."""
