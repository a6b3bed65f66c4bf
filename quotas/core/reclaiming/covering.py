"""The cheapest choice among gangs that frees enough of one resource: gangs are taken whole, so that the last one rarely fits.

A knapsack over the amounts' largest common unit, solved exactly for a need of up to `BUCKETS` of them and, for more, on amounts
rounded against the claimant. Knows nothing of quotas: whether a gang may be taken at all is for `reclaim`.
"""

import numpy as np
from numpy.typing import NDArray

from quotas.core.accounts.ledger import Units

BUCKETS = 512
"""Units that an amount is divided into: the work for one choice is bounded by their square."""
_FEWER = 1e-6
"""Part of the highest cost that each gang costs more, so that of equal choices the one with fewer gangs is cheaper."""


def cheapest(sizes: Units, costs: NDArray[np.float64], need: int) -> list[int]:
    """The cheapest positions, ascending, whose sizes sum up to ``need`` or more; empty when all together do not suffice."""
    if int(sizes.sum()) < need:
        return []
    unit = int(np.gcd.reduce(sizes))
    grain = max(-(-need // (BUCKETS * unit)), 1) * unit
    need = -(-need // grain)
    units = np.minimum(sizes // grain, need)
    if int(units.sum()) < need:  # they suffice by less than the rounding takes away
        return [int(i) for i in sizes.nonzero()[0]]
    costs = costs + _FEWER * max(costs.max(initial=0.0), 1e-12)
    useful = _useful(units, costs, need)
    least = np.full(need + 1, np.inf)
    least[0] = 0.0
    takes = np.zeros((len(useful), need + 1), dtype=np.bool_)  # [choice, units]
    for row, i in enumerate(useful):
        size, beside = int(units[i]), np.empty_like(least)
        beside[:size] = costs[i]
        beside[size:] = least[: need + 1 - size] + costs[i]
        takes[row] = beside < least
        least = np.minimum(beside, least)
    chosen = []
    for row in range(len(useful) - 1, -1, -1):
        if takes[row, need]:
            chosen.append(useful[row])
            need = max(need - int(units[useful[row]]), 0)
    return chosen[::-1]


def _useful(units: Units, costs: NDArray[np.float64], need: int) -> list[int]:
    """Positions that a cheapest choice can contain: of each size the cheapest ones, no more than cover the need alone."""
    useful: list[int] = []
    for size in np.unique(units[units > 0]).tolist():
        alike = (units == size).nonzero()[0]
        useful += alike[np.argsort(costs[alike], kind="stable")][: -(-need // size)].tolist()
    return sorted(useful)
