"""Picks nodes for a gang on one cluster from the counts: exact for pods that ask alike, quick and good for several roles.

Pods go to one node when one holds them all (the one that is left with least, a broken node before a whole one), else to the
nodes that hold most, which is the fewest nodes. Several roles go to one node together when it holds them, else the hardest
role first and the others beside it or on nodes of their own. When that fails `packing` has the last word.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jobs.core.placement.nodes.capacity_index import Bucket, Fleet, Site
from jobs.core.placement.nodes.node_states import Shape, State, Table, Vector, minus

_COSTED = 256
"""Buckets beyond which each is not costed by itself: the least left is good enough and quick."""
_BREAKING = 1e9
"""Worth more than any node: a whole node is broken only when no broken one will do."""


@dataclass(frozen=True, slots=True)
class Load:
    """``each`` pods of one shape on each of these nodes."""

    shape: int
    names: tuple[str, ...]
    each: int


@dataclass(frozen=True, slots=True)
class Group:
    """Parts of a gang that ask alike."""

    parts: tuple[int, ...]
    need: int
    shape: Shape
    column: int
    asked: Vector
    worth: float
    """What one pod takes, in one number."""
    devices: int


@dataclass(slots=True)
class _Run:
    """Nodes of one bucket that were picked, with what is left on each; ``used`` of them have got another role's pods."""

    bucket: Bucket
    names: tuple[str, ...]
    left: Vector
    used: int = 0


def by_worth(groups: tuple[Group, ...]) -> list[int]:
    """The hardest first."""
    return sorted(range(len(groups)), key=lambda i: (-groups[i].worth, i))


Shares = Sequence[tuple[tuple[int, int], int]]
"""(level, domain) → pods."""


class Costing(Protocol):
    """Another opinion than "least left" on one node for all pods."""

    def steps(self, states: list[State], group: Group, pods: int) -> NDArray[np.int64]: ...


@dataclass(slots=True)
class Picker:
    """One attempt at one cluster, or at one of its domains."""

    fleet: Fleet
    site: Site
    domain: tuple[int, int] | None = None
    costing: Costing | None = None
    taken: dict[int, int] = field(default_factory=dict)
    """Bucket → nodes picked from its front."""
    runs: list[_Run] = field(default_factory=list)

    def alike(self, group: Group, index: int = 0) -> list[Load] | None:
        """All pods of the group on nodes not picked yet; None if they do not fit there."""
        fits, need, loads = self._fits(group), group.need, []
        while need:
            enough = (fits >= need).nonzero()[0]
            most = need if len(enough) else int(fits.max(initial=0))
            if not most:
                return None
            indices = enough if len(enough) else (fits == most).nonzero()[0]
            if self.costing is not None and 1 < len(enough) <= _COSTED:
                steps = self.costing.steps([self.site.buckets[i].state for i in enough], group, need)
                best = min(zip(steps.tolist(), map(self._next, enough.tolist()), enough.tolist(), strict=True))
                indices = np.array([best[2]])
            for bucket in self._least_left(indices, most, group.devices, need // most):
                start = self.taken.get(bucket.index, 0)
                nodes = min(len(bucket.names) - start, need // most)
                names = tuple(bucket.names[start : start + nodes])
                loads.append(Load(index, names, most))
                self.taken[bucket.index] = start + nodes
                self.runs.append(_Run(bucket, names, minus(bucket.state.free, group.asked, most)))
                need -= nodes * most
                if start + nodes == len(bucket.names):
                    fits[bucket.index] = 0
        return loads

    def together(self, groups: tuple[Group, ...], total: Table) -> list[Load] | None:
        """The whole gang on one node."""
        nodes = self.holding(groups, total)
        if not len(nodes):
            return None
        bucket = self._least_left(nodes, 1, sum(group.need * group.devices for group in groups), 1)[0]
        return [Load(i, (bucket.names[0],), group.need) for i, group in enumerate(groups)]

    def holding(self, groups: tuple[Group, ...], total: Table) -> NDArray[np.int64]:
        """The buckets whose nodes hold the whole gang each."""
        used, states = len(self.site.buckets), self.fleet.states
        rows = self.site.rows[:used]
        width = len(total)
        holds = np.asarray((states.free[rows, :width] >= total).all(axis=1))
        for group in groups:
            holds &= self._fits(group) > 0
        return holds.nonzero()[0]

    def over(self, group: Group, shares: Shares, index: int = 0) -> list[Load] | None:
        """So many of the pods in each of these domains."""
        loads, whole = [], self.domain
        for domain, pods in shares:
            self.domain = domain
            nodes = self.alike(replace(group, need=pods), index)
            if nodes is None:
                return None
            loads += nodes
        self.domain = whole
        return loads

    def several(self, groups: tuple[Group, ...], *, beside: bool, shares: Shares = ()) -> list[Load] | None:
        """Hardest role first, over ``shares`` if given; the others ``beside`` it where that leaves room, else elsewhere."""
        loads: list[Load] = []
        for i in by_worth(groups):
            if shares and not loads:
                nodes = self.over(groups[i], shares, i)
            else:
                nodes = (self._beside(groups[i], i) if beside and self.runs else None) or self.alike(groups[i], i)
            if nodes is None:
                return None
            loads += nodes
        return loads

    def _beside(self, group: Group, index: int) -> list[Load] | None:
        """On nodes picked for another role; a node takes one more role at most."""
        need, loads = group.need, []
        before = [run.used for run in self.runs]
        for run in self.runs:
            admitted = self.fleet.states.counts[run.bucket.state.row, 2 * group.column]
            fits = _fitting(run.left, group.asked) if admitted else 0
            fits = min(fits, 1) if group.shape.lone else fits
            while need and fits and run.used < len(run.names):
                each = min(fits, need)
                loads.append(Load(index, (run.names[run.used],), each))
                run.used += 1
                need -= each
        if not need:
            return loads
        for run, used in zip(self.runs, before, strict=True):
            run.used = used
        return None

    def _fits(self, group: Group) -> Table:
        """Pods a node of each bucket holds, nothing where no node is left to pick."""
        used = len(self.site.buckets)
        fits: Table = self.fleet.states.counts[self.site.rows[:used], 2 * group.column] * (self.site.sizes[:used] > 0)
        if self.domain is not None:
            fits *= self.site.paths[:used, self.domain[0]] == self.domain[1]
        for index, nodes in self.taken.items():
            if nodes == len(self.site.buckets[index].names):
                fits[index] = 0
        return fits

    def _next(self, index: int) -> str:
        """The first node of a bucket not picked yet."""
        return self.site.buckets[index].names[self.taken.get(index, 0)]

    def _least_left(self, indices: NDArray[np.int64], pods: int, devices: int, nodes: int) -> list[Bucket]:
        """Of these buckets those whose nodes keep least after ``pods`` pods, until they have ``nodes``; equal ones by name."""
        buckets, taken = self.site.buckets, self.taken
        if len(indices) == 1:
            return [buckets[int(indices[0])]]
        states, rows = self.fleet.states, self.site.rows[indices]
        left = np.round(states.worth[rows] + _BREAKING * (states.devices[rows] > pods * devices), 6)
        limit = left.min()
        if nodes > 1:
            order = left.argsort(kind="stable")
            reached = self.site.sizes[indices[order]].cumsum().searchsorted(nodes)
            limit = left[order[min(int(reached), len(order) - 1)]]
        near = (left <= limit).nonzero()[0]
        if nodes == 1:
            return [min((buckets[int(indices[i])] for i in near), key=lambda bucket: self._next(bucket.index))]
        best = [(float(left[i]), buckets[int(indices[i])]) for i in near]
        best.sort(key=lambda b: (b[0], self._next(b[1].index)))
        chosen, missing = [], nodes
        for _, bucket in best:
            if missing > 0:
                chosen.append(bucket)
                missing -= len(bucket.names) - taken.get(bucket.index, 0)
        return chosen


def _fitting(left: Vector, request: Vector) -> int:
    free = (*left, *(0,) * (len(request) - len(left)))
    return max(min((f // a for f, a in zip(free, request, strict=False) if a), default=0), 0)
