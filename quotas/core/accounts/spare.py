"""Whether a queue may use more without going into what is guaranteed to others: then no reclaim can ask for it back.

What each node needs is its use, or its min where that is more, and at least what its children need. A charge leaves every min
alone if the children of no node above it then need more than that node's max. Pure.
"""

import numpy as np

from quotas.core.accounts.ledger import Charge, Ledger, Units


def leaves_mins_alone(ledger: Ledger, charge: Charge) -> bool:
    """Whether every other queue still has its whole min, in all that is charged."""
    asked = ledger.vector(charge.amounts)
    columns = ((asked > 0) & ledger.promised).nonzero()[0]
    if not len(columns):
        return True
    path = ledger.path_rows[charge.leaf]
    children = _needs_of_children(ledger, asked, path, columns)
    return bool((children[path[1:]] <= ledger.max[np.ix_(path[1:], columns)]).all())


def _needs_of_children(ledger: Ledger, asked: Units, path: Units, columns: Units) -> Units:  # [node, column]
    """Of each node what its children need together, once the charge is added to this leaf."""
    used = ledger.held.used[:, columns].copy()
    used[path] += asked[columns]
    needs, children = np.maximum(used, ledger.min[:, columns]), np.zeros_like(used)
    for rows in reversed(ledger.by_depth):
        needs[rows] = np.maximum(needs[rows], children[rows])
        np.add.at(children, ledger.parents[rows], needs[rows])
    return children
