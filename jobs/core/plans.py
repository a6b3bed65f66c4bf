"""What a cycle decides, as values: who is placed where, who waits and why. The services write it down."""

from dataclasses import dataclass, field

from jobs.core.placing.facts import Assignment
from jobs.core.reasons import Reason, Verdict
from jobs.core.world import Gang, Promise


@dataclass(frozen=True, slots=True)
class Spot:
    """A place for the whole gang."""

    cluster_id: int
    found: Assignment
    verdicts: tuple[Verdict, ...]
    """Every cluster looked at, the chosen one first."""

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


@dataclass(frozen=True, slots=True)
class Placed:
    gang: Gang
    spot: Spot

    @property
    def result(self) -> str:
        """As the seed prints it: ``{north:0,[{master 1} {worker 2}]}``."""
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
