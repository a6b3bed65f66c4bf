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

from jobs.core.placement.nodes.capacity_index import Fleet
from jobs.core.placement.nodes.fit import Prepared
from jobs.core.policies.weights import Weights

Shares = NDArray[np.float64]


PARTS = tuple(field.name for field in fields(Weights))
_weights = attrgetter(*PARTS)


@dataclass(slots=True)
class ClusterTraits:
    """What is known of clusters besides what is free, one entry a cluster."""

    failures: Shares
    """Recent failures, faded by time."""
    aggregate: NDArray[np.bool_]
    """Only the sum of what is free is looked at."""
    failed: bool = False
    mixed: bool = False
    """Some cluster is aggregate."""

    @classmethod
    def empty(cls, clusters: int) -> Self:
        return cls(np.zeros(clusters), np.zeros(clusters, dtype=np.bool_))

    def set(self, index: int, failures: float, *, aggregate: bool) -> None:
        self.failures[index], self.aggregate[index] = failures, aggregate
        self.failed = self.failed or failures > 0
        self.mixed = self.mixed or aggregate


Part = Shares | float
"""A number where it is the same for all."""


def score_parts(
    fleet: Fleet,
    gang: Prepared,
    clusters: NDArray[np.int64],
    traits: ClusterTraits,
    *,
    cheapness: Shares | None,
    data: Shares | None,
) -> Mapping[str, Part]:
    """Each part of the score [cluster]; ``cheapness`` and ``data`` [cluster of the fleet] are None where nothing is known."""
    left = _left(fleet, gang, clusters)
    return {
        "size": _size(fleet, gang, clusters),
        "pack": 1 - left,
        "fragments": _fragments(fleet, gang, clusters),
        "spread": left,
        "topology": _topology(fleet, gang, clusters) if fleet.domains else 0.0,
        "cost": 1.0 if cheapness is None else cheapness[clusters],
        "reliability": 1 / (1 + traits.failures[clusters]) if traits.failed else 1.0,
        "data": 1.0 if data is None else data[clusters],
    }


def cheapness_of(costs: Shares) -> Shares | None:
    """1 for the cheapest cluster, half for one that costs twice as much; 0 is not known and taken as the dearest known."""
    known = costs[costs > 0]
    if not known.size:
        return None
    return np.asarray(known.min() / np.where(costs > 0, costs, known.max()), dtype=np.float64)


def weighted_total(parts: Mapping[str, Part], weights: Weights) -> Shares:
    """Rounded, so that what is equal but for the order of sums stays equal."""
    each = _weights(weights)
    score = each[0] * parts[PARTS[0]]
    for name, weight in zip(PARTS[1:], each[1:], strict=True):
        if weight:
            score = score + weight * parts[name]
    scaled: Shares = np.round(np.asarray(score, dtype=np.float64) / max(sum(each), 1e-9), 9)
    return scaled


def _size(fleet: Fleet, gang: Prepared, clusters: NDArray[np.int64]) -> Shares:
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


def _fragments(fleet: Fleet, gang: Prepared, clusters: NDArray[np.int64]) -> Shares:
    """The share of its pods that broken nodes hold, of the shape with most pods."""
    group = max(gang.groups, key=lambda g: g.need) if len(gang.groups) > 1 else gang.groups[0]
    both = fleet.slots[clusters, 2 * group.column]
    broken = both - fleet.slots[clusters, 2 * group.column + 1]
    return np.asarray(np.minimum(broken / group.need, 1.0), dtype=np.float64)


def _topology(fleet: Fleet, gang: Prepared, clusters: NDArray[np.int64]) -> Shares:
    """1 where a domain of the deepest level holds the whole gang, a fraction where a wider one does, else 0."""
    of = fleet.placed
    columns = [2 * group.column for group in gang.groups]
    needs = np.array([group.need for group in gang.groups])
    holds = (fleet.near[: len(of), columns] >= needs).all(axis=1) & (of[:, 0] >= 0)
    depth = np.zeros(len(fleet.slots), dtype=np.int64)
    np.maximum.at(depth, of[holds, 0], of[holds, 1] + 1)
    return np.asarray(depth[clusters] / (of[:, 1].max() + 1), dtype=np.float64)
