"""How every node of a tree stands to a preemptor: where the way to it parts, and what it has above its min."""

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from quotas.core.accounts.ledger import Ledger, Units


@dataclass(frozen=True, slots=True)
class Sides:
    """How each node stands to the preemptor, by row."""

    borrows: NDArray[np.bool_]
    """It is above its min in something, up to the lowest common ancestor; if it is not now, it will not be later."""
    level: Units
    """Of the preemptor's path, where that ancestor is."""
    above: NDArray[np.float64]
    """How far above its min the node just below it is: the dominant share of the fleet, divided by weight."""


def find_sides(ledger: Ledger, path_rows: Units) -> Sides:
    """From the root down, all nodes of one depth at once. ``path_rows``: those of the preemptor."""
    own, level = np.zeros(len(ledger.parents), dtype=np.bool_), np.zeros(len(ledger.parents), dtype=np.int64)
    own[path_rows], level[path_rows] = True, np.arange(len(path_rows))
    parents, top = ledger.parents, np.arange(len(ledger.parents))
    over = ledger.held.claims - ledger.min
    above = (over > 0) | own[:, None]
    for rows in ledger.by_depth:
        outer = parents[rows]
        beyond = ~own[outer]  # the parent has parted from the preemptor's path already
        above[rows] &= above[outer] | ~beyond[:, None]
        level[rows] = np.where(own[rows], level[rows], level[outer])
        top[rows] = np.where(beyond, top[outer], rows)
    shares = (over / np.maximum(ledger.max[0], 1))[:, ledger.promised].max(axis=1, initial=0.0)
    weightless = np.where(shares > 0, inf, 0.0)
    by_weight = np.divide(shares, ledger.weights, out=weightless, where=ledger.weights > 0)
    return Sides(np.asarray(above.any(axis=1)), level, np.where(own, 0.0, by_weight[top]))
