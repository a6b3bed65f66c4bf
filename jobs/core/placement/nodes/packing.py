"""Pods of several shapes onto nodes, together: vector bin packing, exact where that is affordable.

First greedy orders, which find most packings at once. When they fail, an exact search that goes through the nodes and
keeps, for every number of placed pods of all shapes but the most numerous one, the most pods of that one that can stand
beside them: nothing is lost by it, because fewer pods always fit where more do. Its cost is the product of the smaller
roles' replicas (a master, a launcher, a few parameter servers), not of the big one's. Above `EFFORT` it gives up and says
so. Pure arithmetic: it knows neither nodes' names nor clusters.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

EFFORT = 100_000
"""Steps of the exact search, some tenths of a second; beyond it the answer is `Unsure`."""

Counts = tuple[int, ...]
"""Pods per shape."""
Table = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Bin:
    """Nodes that are alike."""

    size: int
    free: tuple[int, ...]
    admits: tuple[bool, ...]
    """Per shape, whether such a pod may run here at all."""
    zones: tuple[str | None, ...] = ()
    """Per zone rule, the value of its label here."""


@dataclass(frozen=True, slots=True)
class Problem:
    needs: Counts
    asked: tuple[tuple[int, ...], ...]
    """Per shape, what one pod asks, on the axis of ``Bin.free``."""
    bins: tuple[Bin, ...]
    apart: frozenset[tuple[int, int]] = frozenset()
    """Shapes, smaller first, that never share a node; (i, i): never two of i."""
    zoned: tuple[frozenset[tuple[int, int]], ...] = ()
    """Zone rules: per rule, the pairs that never share a value of its label."""


@dataclass(frozen=True, slots=True)
class Use:
    """``nodes`` nodes of a bin, each with these pods."""

    bin: int
    pods: Counts
    nodes: int


class Unsure(Exception):
    """Neither a packing nor the proof that there is none within `EFFORT`."""


def pack(problem: Problem) -> list[Use] | None:
    """The nodes to use, or None when it is proven that there is no way."""
    if not problem.zoned:
        for order in _orders(problem):
            for tight in (False, True):
                if (packing := _greedy(problem, order, tight=tight)) is not None:
                    return packing
    return _Search(problem).run()


def _orders(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Hardest first, then the others while they are few."""
    requests = np.array(problem.asked, dtype=np.float64)
    scale = np.maximum(np.array([b.free for b in problem.bins], dtype=np.float64).max(axis=0, initial=1), 1)
    weight = (requests / scale).max(axis=1)
    shapes = sorted(range(len(problem.needs)), key=lambda i: (-weight[i], i))
    yield tuple(shapes)
    if len(shapes) <= 3:
        yield from (order for order in permutations(shapes) if order != tuple(shapes))


def _greedy(problem: Problem, order: Sequence[int], *, tight: bool) -> list[Use] | None:
    """Shape by shape; on the nodes that hold most (or, tight, that have least to spare) first."""
    free = [np.array(b.free, dtype=np.int64) for b in problem.bins]
    piles: list[tuple[int, int, Counts]] = [(i, b.size, (0,) * len(order)) for i, b in enumerate(problem.bins)]
    scale = np.maximum(np.array(free).max(axis=0, initial=1), 1)
    for shape in order:
        request, need = np.array(problem.asked[shape], dtype=np.int64), problem.needs[shape]
        fits = _fitting(np.array(free), request)
        spare = (np.array(free) / scale).sum(axis=1)
        for at in np.lexsort((spare,) if tight else (spare, -fits)):
            origin, size, pods = piles[at]
            each = _capped(problem, shape, int(fits[at]), pods) if problem.bins[origin].admits[shape] else 0
            while need and each and size:
                used, each = (size, each) if need >= size * each else (max(need // each, 1), min(each, need))
                more = tuple(n + each * (i == shape) for i, n in enumerate(pods))
                piles.append((origin, used, more))
                free.append(free[at] - each * request)
                need, size = need - used * each, size - used
            piles[at] = (origin, size, pods)
        if need:
            return None
    return [Use(origin, pods, size) for origin, size, pods in piles if size and any(pods)]


def _fitting(free: Table, request: Table) -> Table:
    fits: Table = np.where(request > 0, free // np.maximum(request, 1), 1 << 30).min(axis=1)
    return np.maximum(fits, 0)


def _capped(problem: Problem, shape: int, fits: int, pods: Counts) -> int:
    if any(n and (min(i, shape), max(i, shape)) in problem.apart for i, n in enumerate(pods)):
        return 0
    return min(fits, 1) if (shape, shape) in problem.apart else fits


Best = dict[Counts, tuple[int, list[Use]]]


class _Search:
    """The exact search. A front maps pods placed of all shapes but ``big`` to the most pods of ``big``, and how."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.big = max(range(len(problem.needs)), key=lambda i: (problem.needs[i], -i))
        self.small = [i for i in range(len(problem.needs)) if i != self.big]
        self.goal = tuple(problem.needs[i] for i in self.small)
        self.most = problem.needs[self.big]
        self.effort = 0

    def run(self) -> list[Use] | None:
        big, uses = self._over(range(len(self.problem.bins)), 0).get(self.goal, (-1, []))
        return self._exactly(uses) if big >= self.most else None

    def _exactly(self, uses: list[Use]) -> list[Use]:
        """Without the pods beyond the needs: counts stop at the needs, so a way may hold more."""
        missing, exact = list(self.problem.needs), []
        for use in uses:
            pods = tuple(min(n, m) for n, m in zip(use.pods, missing, strict=True))
            missing = [m - n for m, n in zip(missing, pods, strict=True)]
            if any(pods):
                exact.append(Use(use.bin, pods, 1))
        return exact

    def _over(self, bins: Sequence[int], rule: int) -> Best:
        """The front over these bins, zone rule after zone rule: inside a zone first, then over the zones."""
        start: Best = {(0,) * len(self.small): (0, [])}
        if rule == len(self.problem.zoned):
            for index in bins:
                front = self._patterns(index)
                for _ in range(min(self.problem.bins[index].size, sum(self.problem.needs))):
                    wider = self._joined(start, front)
                    if not self._better(start, wider):
                        break
                    start = wider
            return start
        free = [i for i in bins if self.problem.bins[i].zones[rule] is None]
        start = self._over(free, rule + 1)
        for zone in sorted({z for i in bins if (z := self.problem.bins[i].zones[rule]) is not None}):
            inside = self._over([i for i in bins if self.problem.bins[i].zones[rule] == zone], rule + 1)
            start = self._joined(start, self._admitted(inside, self.problem.zoned[rule]))
        return start

    def _patterns(self, index: int) -> Best:
        """What one node of a bin can hold."""
        node, problem = self.problem.bins[index], self.problem
        patterns: Best = {}
        for key in self._keys(list(node.free), 0, node.admits):
            left = [
                f - sum(n * problem.asked[i][r] for i, n in zip(self.small, key, strict=True))
                for r, f in enumerate(node.free)
            ]
            fits = min((f // a for f, a in zip(left, problem.asked[self.big], strict=True) if a), default=self.most)
            patterns[key] = (max(min(fits, self.most), 0) if node.admits[self.big] else 0, [])
        return {
            key: (big, [Use(index, self._pods(key, big), 1)] if big or any(key) else [])
            for key, (big, _) in self._admitted(patterns, problem.apart).items()
        }

    def _keys(self, left: list[int], at: int, admits: Sequence[bool]) -> Iterator[Counts]:
        """All ways to put pods of the small shapes from ``at`` on into what is left."""
        if at == len(self.small):
            yield ()
            return
        shape = self.small[at]
        request = self.problem.asked[shape]
        for n in range(self.problem.needs[shape] + 1 if admits[shape] else 1):
            rest = [f - n * a for f, a in zip(left, request, strict=True)]
            if n and any(r < 0 and a for r, a in zip(rest, request, strict=True)):
                return
            self._spend(1)
            for tail in self._keys(rest, at + 1, admits):
                yield (n, *tail)

    def _admitted(self, front: Best, pairs: frozenset[tuple[int, int]]) -> Best:
        """What of a front the pairs allow in one place."""
        if not pairs:
            return front
        admitted: Best = {}
        for key, (big, uses) in front.items():
            present = [i for i, n in zip(self.small, key, strict=True) if n]
            if any((i, j) in pairs for i in present for j in present if i < j):
                continue
            if any((i, i) in pairs and n > 1 for i, n in zip(self.small, key, strict=True)):
                continue
            barred = any((min(i, self.big), max(i, self.big)) in pairs for i in present)
            allowed = 0 if barred else min(big, 1) if (self.big, self.big) in pairs else big
            admitted[key] = (allowed, uses if allowed == big else self._thinned(uses, allowed))
        return admitted

    def _thinned(self, uses: list[Use], allowed: int) -> list[Use]:
        """The same without all but ``allowed`` pods of the big shape."""
        thin = []
        for use in uses:
            keep = min(use.pods[self.big], allowed)
            allowed -= keep
            pods = tuple(keep if i == self.big else n for i, n in enumerate(use.pods))
            if any(pods):
                thin.append(Use(use.bin, pods, 1))
        return thin

    def _joined(self, one: Best, other: Best) -> Best:
        joined: Best = {}
        self._spend(len(one) * len(other))
        for key, (big, uses) in one.items():
            for more, (extra, others) in other.items():
                total = tuple(min(a + b, goal) for a, b, goal in zip(key, more, self.goal, strict=True))
                both = min(big + extra, self.most)
                if total not in joined or joined[total][0] < both:
                    joined[total] = (both, uses + others)
        return joined

    @staticmethod
    def _better(old: Best, new: Best) -> bool:
        return len(new) > len(old) or any(big > old[key][0] for key, (big, _) in new.items())

    def _pods(self, key: Counts, big: int) -> Counts:
        pods = dict(zip(self.small, key, strict=True))
        return tuple(big if i == self.big else pods[i] for i in range(len(self.problem.needs)))

    def _spend(self, steps: int) -> None:
        self.effort += steps
        if self.effort > EFFORT:
            raise Unsure
