"""Which GPUs of a node to take together: the set with the fastest ring, and of those the one that leaves the best sets behind.

Every set of free GPUs is looked at. A ring is as fast as the link-disjoint cycles through all of its GPUs are together; where
no links make a cycle it goes over PCIe. It must not know jobs, nodes or clusters: a matrix comes in, indices go out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, permutations
from math import comb, factorial

GPUs = tuple[int, ...]
EFFORT = 1_000_000
"""Enough for every set of 16 GPUs behind a switch, and for six of 16 that are linked unevenly; some seconds."""
LINK = 20.0
"""GB/s of one NVLink one way, as NCCL assumes for Volta and Ampere."""


@dataclass(frozen=True)
class Board:
    """The GPUs of one node: ``links[a][b]`` is how many direct links join the two."""

    links: tuple[tuple[int, ...], ...]
    sockets: GPUs
    """The CPU socket of each GPU."""
    link_gbs: float = LINK
    near_gbs: float = 10.0
    """Over PCIe inside a socket."""
    far_gbs: float = 6.0
    """Across sockets."""
    _rings: dict[GPUs, float] = field(default_factory=dict, compare=False, repr=False)
    _splits: dict[tuple[GPUs, int], float] = field(default_factory=dict, compare=False, repr=False)

    def ring(self, gpus: GPUs) -> float:
        """Bus bandwidth of an all-reduce over these, GB/s; 0 for less than two."""
        if len(gpus) < 2:
            return 0.0
        if gpus not in self._rings:
            self._rings[gpus] = self._ring(gpus)
        return self._rings[gpus]

    def _ring(self, gpus: GPUs) -> float:
        if len(gpus) == 2:
            rings = float(self.links[gpus[0]][gpus[1]])
        else:
            rings = 2.0 * packed_cycles(tuple(tuple(self.links[a][b] for b in gpus) for a in gpus))
        if rings:
            return rings * self.link_gbs
        return self.near_gbs if self._spanned(gpus) == 1 else self.far_gbs

    def best(self, free: Iterable[int], count: int) -> GPUs | None:
        """The set to take; None where less are free, or where looking at every one would take more than `EFFORT`.

        Equal ones: fewest sockets, then the lowest index.
        """
        left = tuple(sorted(free))
        if not 0 < count <= len(left) or self._effort(len(left), count) > EFFORT:
            return None
        sets = list(combinations(left, count))
        fastest = max(map(self.ring, sets))
        equal = [gpus for gpus in sets if self.ring(gpus) == fastest]
        if self.uniform:
            return min(equal, key=lambda gpus: (self._spanned(gpus), gpus))
        return min(equal, key=lambda gpus: (-self.split(_without(left, gpus), count), self._spanned(gpus), gpus))

    def _effort(self, free: int, count: int) -> int:
        """Sets, times the cycles that are looked at in each."""
        return comb(free, count) * (1 if self.uniform else max(factorial(count - 1) // 2, 1))

    def split(self, gpus: GPUs, count: int) -> float:
        """The most bandwidth in sum that sets of ``count`` out of these have."""
        if len(gpus) < count:
            return 0.0
        if (gpus, count) not in self._splits:
            first, rest = gpus[0], gpus[1:]
            bandwidth = self.split(rest, count) if len(gpus) % count else 0.0
            for others in combinations(rest, count - 1):
                chosen = (first, *others)
                bandwidth = max(bandwidth, self.ring(chosen) + self.split(_without(rest, others), count))
            self._splits[gpus, count] = bandwidth
        return self._splits[gpus, count]

    @property
    def uniform(self) -> bool:
        """All pairs alike, as behind a switch: any set is as good as another."""
        return len({n for a, row in enumerate(self.links) for b, n in enumerate(row) if a != b}) <= 1

    def _spanned(self, gpus: GPUs) -> int:
        return len({self.sockets[gpu] for gpu in gpus})


def packed_cycles(links: tuple[tuple[int, ...], ...]) -> int:
    """The most cycles through all that use every link once at most."""
    size = len(links)
    pairs = {links[a][b] for a, b in combinations(range(size), 2)}
    if len(pairs) == 1:
        return pairs.pop() * (size - 1) // 2
    return _packed(links, 0)


@cache
def _packed(links: tuple[tuple[int, ...], ...], begin: int) -> int:
    """Cycles are taken in one order, each as often as wanted, so that no packing is looked at twice."""
    bound = min(map(sum, links)) // 2
    best = 0
    cycles = _cycles(len(links))
    for index in range(begin, len(cycles)):
        if best == bound:
            return best
        cycle = cycles[index]
        if all(links[a][b] for a, b in cycle):
            best = max(best, 1 + _packed(_minus(links, cycle), index))
    return best


@cache
def _cycles(size: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """All cycles through ``size`` points, each in one direction."""
    orders = ((0, *order) for order in permutations(range(1, size)) if order[0] < order[-1])
    return tuple(tuple(zip(order, (*order[1:], 0), strict=True)) for order in orders)


def _minus(links: Sequence[Sequence[int]], cycle: Iterable[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    left = [list(row) for row in links]
    for a, b in cycle:
        left[a][b] -= 1
        left[b][a] -= 1
    return tuple(map(tuple, left))


def _without(gpus: GPUs, taken: GPUs) -> GPUs:
    return tuple(gpu for gpu in gpus if gpu not in taken)
