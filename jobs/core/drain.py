"""Drain reservation: big gangs do not starve behind small ones, and what is kept for them does not stand idle.

The big gang that has waited longest gets the nodes of one cluster that are expected to be whole first. Others start on those
nodes only if they are expected to be gone by then: with known run times nobody who came later delays it. With guessed ones
a delay is bounded by what a guess is wrong by, as whole nodes are chosen anew with every turn and no later than before.
It must not know quotas, policies or how a gang is fitted: a `Yard` does that. Times are seconds on any clock.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

BIG = 8
"""Whole nodes from which on a gang is big: smaller ones find room often enough without nodes being kept for them."""
UNKNOWN = 3600.0
"""Expected of somebody's very first job."""
OVERDUE = 60.0
"""A run that has outlasted its guess is expected to go on this long and half as long again as it ran."""


@dataclass(frozen=True, slots=True)
class Waiting:
    name: Hashable
    shape: Hashable
    """What one of a shape is refused, all are."""
    nodes: int
    """Whole nodes it needs, a begun one counted as one."""
    lasts: float
    """Known or guessed run time."""


@dataclass(frozen=True, slots=True)
class Drain:
    """These nodes are kept for one gang, which is expected to start there then."""

    gang: Hashable
    cluster: str
    nodes: tuple[str, ...]
    starts: float

    def lets(self, job: Waiting, now: float) -> bool:
        """Whether it may use the nodes: it is gone before the gang starts."""
        return job.name != self.gang and now + job.lasts <= self.starts


@dataclass(slots=True)
class Guesses:
    """How long a job will run: as long as its owner's last one with as many devices, else as the owner's last one."""

    _last: dict[tuple[Hashable, int], float] = field(default_factory=dict)
    _any: dict[Hashable, float] = field(default_factory=dict)

    def learn(self, owner: Hashable, devices: int, ran: float) -> None:
        self._last[owner, devices] = self._any[owner] = ran

    def of(self, owner: Hashable, devices: int) -> float:
        return self._last.get((owner, devices), self._any.get(owner, UNKNOWN))


def ends(started: float, lasts: float, now: float) -> float:
    """When a running job is expected to be gone."""
    ran = now - started
    return started + lasts if lasts > ran else now + ran / 2 + OVERDUE


def plan(gang: Waiting, whole_at: Mapping[str, Mapping[str, float]]) -> Drain | None:
    """The cluster where so many nodes are whole first, and those nodes; equal ones in the order given."""
    best: Drain | None = None
    for cluster, times in whole_at.items():
        first = sorted(times, key=times.__getitem__)[: gang.nodes]
        if len(first) < gang.nodes:
            continue
        starts = times[first[-1]]
        if best is None or starts < best.starts:
            best = Drain(gang.name, cluster, tuple(first), starts)
    return best


class Yard(Protocol):
    """Where gangs are placed: the fleet, or a model of it."""

    def place(self, job: Waiting) -> bool:
        """Starts it if it fits somewhere on nodes that are not kept."""

    def whole_at(self) -> Mapping[str, Mapping[str, float]]:
        """Per cluster and node, when everybody who is on it now is expected to be gone."""

    def keep(self, drain: Drain) -> None: ...

    def unkeep(self) -> None: ...


def turn(queue: Sequence[Waiting], yard: Yard, now: float, big: int = BIG) -> set[Hashable]:
    """One pass over the queue, in its order; who started. Nothing is kept before it, nor after it."""
    refused: set[Hashable] = set()
    started: set[Hashable] = set()

    def offer(job: Waiting) -> None:
        if job.name in started or job.shape in refused:
            return
        if yard.place(job):
            started.add(job.name)
        else:
            refused.add(job.shape)

    drain = None
    for job in (job for job in queue if job.nodes >= big):
        offer(job)
        if job.name not in started and (drain := plan(job, yard.whole_at())) is not None:
            break
    if drain is not None:
        yard.keep(drain)
    for job in queue:
        offer(job)
    if drain is not None:
        yard.unkeep()
        refused.clear()
        for job in queue:
            if drain.lets(job, now):
                offer(job)
    return started
