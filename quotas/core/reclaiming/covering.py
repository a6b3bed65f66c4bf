"""The cheapest choice among gangs that frees enough of one resource: gangs are taken whole, so that the last one rarely fits.

A knapsack over the amounts' largest common unit, solved exactly for a need of up to `BUCKETS` of them and, for more, on amounts
rounded against the claimant. Gangs of a node may go only while the node has room to lose: what has gone of it before the last
one is less than that. Whose nodes these are, and whether a gang may be taken at all, is for `reclaim`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from quotas.core.accounts.ledger import Units

BUCKETS = 1024
"""Units that an amount is divided into: the work for one choice is bounded by their square."""
ROUNDS = 16
"""How often it is chosen anew because a node would lose too much; the last choice stands."""
WORK = 2**15
"""How many ways to take gangs of one node are looked at; of more, those that lose least for what they free."""
_FEWER = 1e-6
"""Part of the highest cost that each gang costs more, so that of equal choices the one with fewer gangs is cheaper."""
_Choice = tuple[int, float, tuple[int, ...]]
"""(size, cost, positions) of gangs that go together."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the nodes that gangs belong to may lose."""

    leaf: Units
    """Of each gang."""
    nodes: Mapping[int, tuple[int, ...]]
    """Of each leaf those that are limited, the leaf first and each within the next."""
    room: Units
    """Of each node what it may lose before the last gang of it goes."""

    def broken(self, chosen: Iterable[int], sizes: Units) -> set[int]:
        """The nodes that would lose too much."""
        gone: dict[int, list[int]] = {}
        for i in chosen:
            for node in self.nodes[int(self.leaf[i])]:
                gone.setdefault(node, []).append(int(sizes[i]))
        return {node for node, each in gone.items() if sum(each) - max(each) >= self.room[node]}

    def families(self, bound: set[int]) -> dict[int, list[int]]:
        """The leaves below each outermost node of those."""
        leaves: dict[int, list[int]] = {}
        for leaf, nodes in self.nodes.items():
            if outermost := [node for node in nodes if node in bound][-1:]:
                leaves.setdefault(outermost[0], []).append(leaf)
        return leaves


def cheapest(sizes: Units, costs: NDArray[np.float64], need: int, limits: Limits | None = None) -> list[int]:
    """The cheapest positions whose sizes sum up to ``need`` or more; empty when no choice suffices.

    They are ascending; with ``limits`` the smallest come first, so that each may still go when it is its turn.
    """
    if int(sizes.sum()) < need:
        return []
    unit = int(np.gcd.reduce(sizes))
    grain = max(-(-need // (BUCKETS * unit)), 1) * unit
    need = -(-need // grain)
    units = np.minimum(sizes // grain, need)
    if int(units.sum()) < need:  # they suffice by less than the rounding takes away
        return [int(i) for i in sizes.nonzero()[0]]
    costs = costs + _FEWER * max(costs.max(initial=0.0), 1e-12)
    if limits is None:
        return sorted(_choose(_alone(_useful(units, costs, need), units, costs), need))
    limits = replace(limits, room=-(-limits.room // grain))
    return sorted(_choose_within(units, costs, need, limits), key=lambda i: (int(sizes[i]), i))


def _choose_within(units: Units, costs: NDArray[np.float64], need: int, limits: Limits) -> list[int]:
    """Without limits first; then with those of the nodes of which too much was chosen, until it is of none."""
    chosen: list[int] = []
    bound: set[int] = set()
    for _ in range(ROUNDS):
        free, items = units.copy(), []
        for leaves in limits.families(bound).values():
            family = np.isin(limits.leaf, leaves).nonzero()[0]
            items.append(_together(family, units, costs, need, limits, bound))
            free[family] = 0
        chosen = _choose(items + _alone(_useful(free, costs, need), units, costs), need)
        broken = limits.broken(chosen, units)
        if not broken:
            break
        bound |= broken
    return chosen


def _alone(positions: Iterable[int], units: Units, costs: NDArray[np.float64]) -> list[list[_Choice]]:
    return [[(int(units[i]), float(costs[i]), (i,))] for i in positions]


def _choose(items: list[list[_Choice]], need: int) -> list[int]:
    """The positions of at most one choice of each item; empty when that does not suffice."""
    least = np.full(need + 1, np.inf)
    least[0] = 0.0
    takes = np.zeros((len(items), need + 1), dtype=np.int16)  # [item, units]: which choice, counted from 1
    for row, choices in enumerate(items):
        before = least
        for number, (size, cost, _) in enumerate(choices, start=1):
            beside = np.empty_like(before)
            beside[:size] = cost
            beside[size:] = before[: need + 1 - size] + cost
            takes[row, beside < least] = number
            least = np.minimum(beside, least)
    chosen: list[int] = []
    if np.isinf(least[need]):
        return chosen
    for row in range(len(items) - 1, -1, -1):
        if number := int(takes[row, need]):
            size, _, positions = items[row][number - 1]
            chosen += positions
            need = max(need - size, 0)
    return chosen


def _together(
    family: Units, units: Units, costs: NDArray[np.float64], need: int, limits: Limits, bound: set[int]
) -> list[_Choice]:
    """What may go of the gangs below one limited node, by size: the cheapest for each.

    The smallest go first: no gang can follow where larger ones went before and not where smaller ones did.
    """
    counted = sorted({node for i in family for node in limits.nodes[int(limits.leaf[i])] if node in bound})
    room = [int(limits.room[node]) for node in counted]
    ways: dict[tuple[int, ...], tuple[float, tuple[int, ...]]] = {(0,) * (len(counted) + 1): (0.0, ())}
    """What is freed, and what each node has lost, up to its room -> cost and positions."""
    going = _useful_of_each_leaf(family, units, costs, need, limits)
    for i in sorted(going, key=lambda i: (int(units[i]), float(costs[i]))):
        size, nodes = int(units[i]), limits.nodes[int(limits.leaf[i])]
        inside = [column for column, node in enumerate(counted) if node in nodes]
        for (freed, *lost), (cost, chosen) in list(ways.items()):
            if freed >= need or any(lost[column] >= room[column] for column in inside):
                continue
            for column in inside:
                lost[column] = min(lost[column] + size, room[column])
            after, more = (min(freed + size, need), *lost), (cost + float(costs[i]), (*chosen, i))
            if after not in ways or more[0] < ways[after][0]:
                ways[after] = more
        if len(ways) * len(going) > WORK:
            ways = dict(sorted(ways.items(), key=lambda way: way[1][0] / (way[0][0] or inf))[: WORK // len(going)])
    choices: dict[int, _Choice] = {}
    for (freed, *_), (cost, chosen) in ways.items():
        if freed and (freed not in choices or cost < choices[freed][1]):
            choices[freed] = (freed, cost, chosen)
    return list(choices.values())


def _useful_of_each_leaf(
    family: Units, units: Units, costs: NDArray[np.float64], need: int, limits: Limits
) -> list[int]:
    useful: list[int] = []
    for leaf in np.unique(limits.leaf[family]).tolist():
        own = family[limits.leaf[family] == leaf]
        useful += own[_useful(units[own], costs[own], need)].tolist()
    return useful


def _useful(units: Units, costs: NDArray[np.float64], need: int) -> list[int]:
    """Positions that a cheapest choice can contain: of each size the cheapest ones, no more than cover the need alone."""
    useful: list[int] = []
    for size in np.unique(units[units > 0]).tolist():
        alike = (units == size).nonzero()[0]
        useful += alike[np.argsort(costs[alike], kind="stable")][: -(-need // size)].tolist()
    return sorted(useful)
