"""What a min promises beside what it states: a promise of GPUs is one of what a pod with those GPUs needs.

A node that states a min of GPUs and none of CPUs says nothing about CPUs. Its jobs that ask for GPUs are judged by their GPUs
alone: else they could take nothing back as soon as another node states CPUs. Counts (jobs, pods) that are not stated follow
whatever is. What another node does state comes first: it may take back what was only needed beside something else.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from quotas.core.accounts.ledger import Ledger, Units
from quotas.core.trees.amounts import COUNTS

Mask = NDArray[np.bool_]


def widen(ledger: Ledger, within: Mask, request: Units, path_rows: Units) -> Mask:  # [level, resource]
    """``within``, and where the request is covered by what it asks for beside."""
    for followers, leads in _steps(ledger):
        asked = leads & (request > 0)
        covered = ledger.unstated[path_rows] & followers
        if asked.any() and covered.any():
            low = ledger.min[path_rows][:, asked]
            holds = np.asarray(within[:, asked].all(axis=1) & (low > 0).any(axis=1))
            within = within | (covered & holds[:, None])
    return within


def are_covered(ledger: Ledger, row: int, over: Iterable[int], asked: Iterable[int]) -> bool:
    """Whether a node that a job would take above its min in these columns stays within it, as it states none of them."""
    unstated, low, columns = ledger.unstated[row], ledger.min[row], list(asked)
    steps = _steps(ledger)
    return all(
        bool(unstated[column])
        and any(f[column] and lead[each] and low[each] > 0 for f, lead in steps for each in columns)
        for column in over
    )


def narrow(ledger: Ledger, above: Mask, covered: Mask, size: Units, rows: Iterable[int]) -> Mask:  # [row, resource]
    """Where these nodes are ``above`` their min for a claimant that is itself covered, in the columns ``covered``.

    Of two who state nothing of what is short, the one within what it does state keeps it.
    """
    for followers, leads in _steps(ledger):
        asked = leads & (size > 0)
        soft = ledger.unstated[list(rows)] & followers & covered
        if asked.any() and soft.any():
            stated = (ledger.min[list(rows)][:, asked] > 0).any(axis=1)
            keeps = np.asarray(stated & ~above[:, asked].any(axis=1))
            above = above & ~(soft & keeps[:, None])
    return above


def _steps(ledger: Ledger) -> tuple[tuple[Mask, Mask], tuple[Mask, Mask]]:
    """What follows, and what it follows: all but counts follows GPUs; then counts follow all of that."""
    gpus, counts = ledger.gpus, np.array([name in COUNTS for name in ledger.resources])
    return (~gpus & ~counts, gpus & ~ledger.ignored), (counts, ~counts & ledger.promised)
