"""What a cycle decides, as values: who is placed where, who waits and why. The services write it down."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from jobs.core.gang.types import Gang, Promise
from jobs.core.placement.types import Assignment
from jobs.core.reasons import Reason, Verdict


@dataclass(frozen=True, slots=True)
class Spot:
    """A place for the whole gang, or for one share of a job that is divided."""

    cluster_id: int
    found: Assignment
    verdicts: tuple[Verdict, ...]
    """Every cluster looked at, the chosen one first."""
    others: tuple["Spot", ...] = ()
    """Where the other shares go."""

    @property
    def cluster(self) -> str:
        return self.found.cluster

    def promise(self, key: object) -> Promise:
        """What it holds from now on; on nodes by name where nodes were chosen."""
        held = []
        for parts, load in self.found.loads:
            request = self.found.demand.parts[parts[0]].ask.request
            held.append(({name: amount * load.each for name, amount in request}, load.names))
        return Promise(key, self.cluster, self.found.demand.total, tuple(held))

    @property
    def shares(self) -> tuple["Spot", ...]:
        """This one and the others: attempt after attempt."""
        return self, *self.others

    @property
    def where(self) -> str:
        """The cluster, or the clusters of all shares, in words."""
        return ", ".join(share.cluster for share in self.shares)

    def promises(self, gang: Gang) -> Iterator[Promise]:
        """What the gang holds from now on, under the number of each attempt."""
        name: Hashable = gang.uid or gang.job_id
        for number, share in enumerate(self.shares, start=gang.attempt + 1):
            yield share.promise((name, number))

    @property
    def pods(self) -> int:
        return sum(part.replicas for part in self.found.demand.parts)


@dataclass(frozen=True, slots=True)
class Placed:
    gang: Gang
    spot: Spot

    @property
    def result(self) -> str:
        """As the seed prints it: ``{north:0,[{master 1} {worker 2}]}``; when it is divided, ``{north:3, south:2}``."""
        if self.spot.others:
            return f"{{{', '.join(f'{share.cluster}:{share.pods}' for share in self.spot.shares)}}}"
        roles = " ".join(f"{{{name} {replicas}}}" for name, replicas, _ in self.gang.roles)
        return f"{{{self.spot.cluster}:0,[{roles}]}}"


@dataclass(frozen=True, slots=True)
class Waits:
    gang: Gang
    reason: Reason


@dataclass(slots=True)
class Plan:
    placed: list[Placed] = field(default_factory=list)
    waits: list[Waits] = field(default_factory=list)
    """Those whose reason is new; the others wait for what they were told."""
    claimants: list[Gang] = field(default_factory=list)
    """Of those who wait, in their order, who might have a place taken back for them."""
    more: bool = False
    """There is more to decide than one plan holds."""
    tree_version: int = 0
    """Of the quota tree it was made by; 0: there was none."""
