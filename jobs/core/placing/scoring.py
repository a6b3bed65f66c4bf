"""Which of the clusters that hold a gang is the best for it, and for those that come after.

Every part is a share from 0 to 1, larger is better, for all clusters at once; the score is their weighted mean. The same
numbers explain the choice. It must not know policies or names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Self

import numpy as np
from numpy.typing import NDArray

from jobs.core.placing.fit import Prepared
from jobs.core.placing.fleet import Fleet

Shares = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Weights:
    small: float = 1.5
    """Use the smallest cluster that will do: the larger ones stay free for gangs that fit nowhere else."""
    pack: float = 0.1
    """Fill the fullest cluster first: the emptier ones stay whole for a gang that needs one."""
    whole: float = 0.1
    """Use broken nodes before breaking whole ones."""
    spread: float = 0.0
    """Go where most is free; the opposite of pack."""
    near: float = 0.5
    """Inside the smallest network domain: one node, then the deepest level."""
    cost: float = 0.5
    """Cheap GPU hours first."""
    trust: float = 1.0
    """Where fewer jobs failed lately."""
    data: float = 1.0
    """Where its data is."""


PARTS = tuple(field.name for field in fields(Weights))
_weights = attrgetter(*PARTS)


@dataclass(slots=True)
class Standing:
    """What is known of clusters besides what is free, one entry a cluster."""

    cost: Shares
    """Per GPU hour; 0: not known, taken as the dearest known."""
    failures: Shares
    """Recent failures, faded by time."""
    aggregate: NDArray[np.bool_]
    """Only the sum of what is free is looked at."""
    priced: bool = False
    failed: bool = False
    mixed: bool = False
    """Some cluster is aggregate."""

    @property
    def cheap(self) -> Shares:
        """1 for the cheapest cluster of the fleet, half for one that costs twice as much."""
        known = self.cost[self.cost > 0]
        return np.asarray(known.min() / np.where(self.cost > 0, self.cost, known.max()), dtype=np.float64)

    @classmethod
    def empty(cls, clusters: int) -> Self:
        return cls(np.zeros(clusters), np.zeros(clusters), np.zeros(clusters, dtype=np.bool_))

    def set(self, index: int, cost: float, failures: float, *, aggregate: bool) -> None:
        self.cost[index], self.failures[index], self.aggregate[index] = cost, failures, aggregate
        self.priced, self.failed = self.priced or cost > 0, self.failed or failures > 0
        self.mixed = self.mixed or aggregate


Part = Shares | float
"""A number where it is the same for all."""


def parts(
    fleet: Fleet, gang: Prepared, clusters: NDArray[np.int64], standing: Standing, data: Shares | None
) -> Mapping[str, Part]:
    left = _left(fleet, gang, clusters)
    return {
        "small": _small(fleet, gang, clusters),
        "pack": 1 - left,
        "whole": _whole(fleet, gang, clusters),
        "spread": left,
        "near": _near(fleet, gang, clusters) if fleet.domains else 0.0,
        "cost": standing.cheap[clusters] if standing.priced else 1.0,
        "trust": 1 / (1 + standing.failures[clusters]) if standing.failed else 1.0,
        "data": 1.0 if data is None else data[clusters],
    }


def total(found: Mapping[str, Part], weights: Weights) -> Shares:
    """Rounded, so that what is equal but for the order of sums stays equal."""
    each = _weights(weights)
    score = each[0] * found[PARTS[0]]
    for name, weight in zip(PARTS[1:], each[1:], strict=True):
        if weight:
            score = score + weight * found[name]
    scaled: Shares = np.round(np.asarray(score, dtype=np.float64) / max(sum(each), 1e-9), 9)
    return scaled


def _small(fleet: Fleet, gang: Prepared, clusters: NDArray[np.int64]) -> Shares:
    """1 for the smallest cluster of the fleet, half for one of twice its size."""
    capacity = fleet.capacity[:, gang.scarce]
    smallest = capacity.min(where=capacity > 0, initial=np.iinfo(np.int64).max)
    return np.asarray(smallest / np.maximum(capacity[clusters], smallest), dtype=np.float64)


def _left(fleet: Fleet, gang: Prepared, clusters: NDArray[np.int64]) -> Shares:
    """The share of the scarce resource left free: devices if it asks any, else what it asks most of."""
    resource = gang.scarce
    capacity = fleet.capacity[clusters, resource]
    left = (fleet.room[clusters, resource] - gang.total[resource]) / np.maximum(capacity, 1)
    return np.asarray(left.clip(0, 1), dtype=np.float64)


def _whole(fleet: Fleet, gang: Prepared, clusters: NDArray[np.int64]) -> Shares:
    """The share of its pods that broken nodes hold, of the shape with most pods."""
    group = max(gang.groups, key=lambda g: g.need) if len(gang.groups) > 1 else gang.groups[0]
    both = fleet.slots[clusters, 2 * group.column]
    broken = both - fleet.slots[clusters, 2 * group.column + 1]
    return np.asarray(np.minimum(broken / group.need, 1.0), dtype=np.float64)


def _near(fleet: Fleet, gang: Prepared, clusters: NDArray[np.int64]) -> Shares:
    """1 where a domain of the deepest level holds the whole gang, a fraction where a wider one does, else 0."""
    of = fleet.placed
    columns = [2 * group.column for group in gang.groups]
    needs = np.array([group.need for group in gang.groups])
    holds = (fleet.near[: len(of), columns] >= needs).all(axis=1) & (of[:, 0] >= 0)
    depth = np.zeros(len(fleet.slots), dtype=np.int64)
    np.maximum.at(depth, of[holds, 0], of[holds, 1] + 1)
    return np.asarray(depth[clusters] / (of[:, 1].max() + 1), dtype=np.float64)
