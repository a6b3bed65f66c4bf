"""Who is next: in one queue by priority, time and name; across queues by what each was promised and has borrowed.

At every node of the tree its children compete with their best job: first those that stay within min with it, then the least
dominant borrowed share after admission divided by weight, then priority, time and name. A child's claim depends on nothing
but its own use, so an admission moves only the nodes on its path. Where the policy is Round, the child with the fewest jobs
admitted is next instead of the one with the least share: taking turns, without a memory that could be lost.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np

from quotas.core.amounts import MAX_JOBS, UNLIMITED
from quotas.core.ledger import Charge, Ledger, Units
from quotas.core.tree import QueuePolicy

Place = tuple[int, float, str, str]
Claim = tuple[int, float, Place]
"""Less is sooner."""


@dataclass(frozen=True)
class Unit:
    """A job's place in a queue."""

    id: str
    name: str
    charge: Charge
    priority: int
    queued_at: datetime

    @cached_property
    def place(self) -> Place:
        return (-self.priority, self.queued_at.timestamp(), self.name, self.id)

    @property
    def leaf(self) -> str:
        return self.charge.leaf

    @cached_property
    def shape(self) -> tuple[str, bool, frozenset[tuple[str, int]]]:
        """Units of one shape get the same answer from the same ledger."""
        return self.leaf, self.charge.preemptible, frozenset(self.charge.amounts.items())


class Claims:
    """The claims of the nodes of one ledger, which it reads and never changes."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lendable = _lendable(ledger)
        self._rounds = {
            row
            for row, node in enumerate(ledger.tree.nodes)
            if node.parent and ledger.tree.by_path[node.parent].attributes.queue_policy is QueuePolicy.ROUND
        }
        self._weights = [node.attributes.weight for node in ledger.tree.nodes]
        self._jobs = ledger.column[MAX_JOBS]

    def of(self, row: int, asked: Units, place: Place) -> Claim:
        """What the node at this row, with a job that asks this, stands with among its siblings."""
        share = self.share(row, asked)
        if row in self._rounds:
            return int(share > 0), float(self._ledger.held.used[row, self._jobs]), place
        return int(share > 0), share, place

    def share(self, row: int, asked: Units) -> float:
        """The dominant borrowed share with the job, divided by weight; 0 exactly when all of it stays within min."""
        held, low = self._ledger.held.used[row], self._ledger.min[row]
        after = held + np.minimum(asked, UNLIMITED - held)
        borrowed = np.where((asked > 0) & self._ledger.guarded[row], after - low, 0)
        return float((np.maximum(borrowed, 0) / self._lendable[row]).max()) / self._weights[row]


def _lendable(ledger: Ledger) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:  # [node, resource]
    """What a node and its siblings may have together: the least max from the parent up; at least one unit."""
    lendable = np.ones(ledger.max.shape)
    for node in ledger.tree.nodes[1:]:
        way = ledger.way[node.parent]
        lendable[ledger.row[node.path]] = np.maximum(ledger.max[way].min(axis=0), 1)
    return lendable
