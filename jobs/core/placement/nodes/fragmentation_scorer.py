"""Node choice by what usually comes: the rule of `fragmentation` on the engine's own states, where devices are whole.

Of the nodes that hold all pods of a gang the one is taken on which least becomes useless to the usual pods, plus the price of
its class: what is asked of it by pods that can go nowhere else. Differences below a step count as equal, and go by name.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jobs.core.gang.requirements import PodRequirements
from jobs.core.placement.nodes.capacity_index import Fleet
from jobs.core.placement.nodes.fragmentation import STEP, WHOLE
from jobs.core.placement.nodes.node_selection import Group
from jobs.core.placement.nodes.node_states import Shape, State, minus

Usual = Sequence[tuple[PodRequirements, float]]
"""What a pod asks, and its share of all that come."""

MOST_USUAL = 64
"""Shapes looked at, the most frequent ones."""


class Expectation:
    """Good until the fleet's columns are forgotten; prices are of the fleet as it was when this was made."""

    def __init__(self, fleet: Fleet, usual: Usual) -> None:
        asking = sorted(((ask, share) for ask, share in usual if _devices(ask)), key=lambda u: -u[1])[:MOST_USUAL]
        fleet.make_room(len(asking))
        self.fleet = fleet
        self.columns = [2 * fleet.column(Shape(ask)) for ask, _ in asking]
        self.epoch = fleet.states.epoch
        self.shares = np.array([share for _, share in asking]) / max(sum(share for _, share in asking), 1e-9)
        self.prices = self._prices(asking)

    def steps(self, states: list[State], group: Group, pods: int) -> NDArray[np.int64]:
        """What each of these states costs as the place of ``pods`` pods; the least is best."""
        after = [self.fleet.states.state(s.kind, minus(s.free, group.asked, pods)).row for s in states]
        self.fleet.fit_tables()
        before = [state.row for state in states]
        cost = self._stranded(after) - self._stranded(before)
        if not _picky(group.shape.ask):
            cost += np.array([self.prices.get(s.kind, 0.0) for s in states]) * group.devices * pods
        steps: NDArray[np.int64] = np.rint(cost * WHOLE / STEP).astype(np.int64)
        return steps

    def _stranded(self, rows: list[int]) -> NDArray[np.float64]:
        """Free devices that are of no use, expected over the next pod."""
        lost = self.fleet.states.counts[rows][:, self.columns] == 0
        return np.asarray((lost @ self.shares) * self.fleet.states.idle[rows], dtype=np.float64)

    def _prices(self, usual: Usual) -> dict[int, float]:
        """Per class, how much of it is asked by picky pods, when the fleet is asked for all it has."""
        states = self.fleet.states
        supply: dict[int, int] = {}
        for site in self.fleet.sites.values():
            for bucket in site.buckets:
                devices = sum(n for name, n in states.classes[bucket.state.kind].allocatable if "/" in name)
                supply[bucket.state.kind] = supply.get(bucket.state.kind, 0) + devices * len(bucket.names)
        demand = sum(share * _devices(ask) for ask, share in usual)
        prices = dict.fromkeys(supply, 0.0)
        for ask, share in usual:
            open_to = [k for k in supply if _picky(ask) and supply[k] and ask.refusal(states.classes[k]) is None]
            for kind in open_to:
                prices[kind] += share * _devices(ask) / demand * sum(supply.values()) / sum(supply[k] for k in open_to)
        return prices


def _devices(ask: PodRequirements) -> int:
    return sum(amount for name, amount in ask.request if "/" in name)


def _picky(ask: PodRequirements) -> bool:
    return bool(ask.selector or ask.terms)
