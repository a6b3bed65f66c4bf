"""What nodes borrow of the resources that are short, compared to what there is for them and their siblings, by weight. Pure.

Plain numbers, remembered until the use of a node changes: a search compares the same few nodes again and again.
"""

from collections.abc import Iterable

import numpy as np

from quotas.core.accounts.ledger import Ledger, Units
from quotas.core.trees.amounts import UNLIMITED

Share = tuple[bool, float]
"""(whether the node borrows and has weight 0, what it borrows, divided by its weight)."""
_ALIKE = 1e-9
"""Shares that differ by less are the same: they are quotients."""


class BorrowedShares:
    def __init__(self, ledger: Ledger, columns: list[int]) -> None:
        """``columns``: the resources that are compared; the largest part of any of them is a node's share."""
        self._ledger, self._columns = ledger, np.array(columns, dtype=np.int64)
        self._known: dict[int, Share] = {}

    def of(self, row: int) -> Share:
        """The share of the node as things stand."""
        known = self._known.get(row)
        if known is None:
            known = self._known[row] = self._compute(row, [0] * len(self._columns))
        return known

    def with_more(self, row: int, more: Units) -> Share:
        """The share of the node if it used so much more."""
        return self._compute(row, more[self._columns].tolist())

    def changed(self, rows: Iterable[int]) -> None:
        """The use of these nodes has changed."""
        for row in rows:
            self._known.pop(row, None)

    def _compute(self, row: int, more: list[int]) -> Share:
        ledger, columns = self._ledger, self._columns
        used: list[int] = ledger.held.used[row, columns].tolist()
        low: list[int] = ledger.min[row, columns].tolist()
        above = ledger.path_rows[ledger.tree.nodes[ledger.parent[row]].path]
        lendable: list[int] = ledger.max[np.ix_(above, columns)].min(axis=0).tolist()
        parts = zip(used, more, low, lendable, strict=True)
        share = max(
            (max(u + m - least, 0) / max(most, 1) for u, m, least, most in parts if most < UNLIMITED), default=0.0
        )
        weight = float(ledger.weights[row])
        return (False, share / weight) if weight else (share > 0, share)


def is_less(one: Share, other: Share) -> bool:
    """A node without a weight borrows more than all that have one."""
    return one[1] + _ALIKE < other[1] if one[0] is other[0] else other[0]


def as_percent(share: Share) -> str:
    return f"{100 * share[1]:.3g} %{' without a weight' if share[0] else ''}"
