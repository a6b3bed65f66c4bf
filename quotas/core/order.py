"""Who is next: in one queue by priority, time and name; across queues by what each was promised and has borrowed.

At every node of the tree its children compete with their best job: first those that stay within min with it, then the least
dominant borrowed share after admission divided by weight, then priority, time and name. A queue whose best job would borrow
stands before all who borrow if one behind it would not, or what was promised to that one would be lent to others; but after
those within min, who would take back at once what its best job gets. Within min is judged in what anybody is promised, as
reclaim judges it. A child's claim
depends on nothing but its own use, so an admission moves only the nodes on its path. Where the policy is Round, the child with
the fewest jobs admitted is next instead of the one with the least share: taking turns, without a memory that could be lost.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np

from quotas.core.amounts import COUNTS, MAX_JOBS
from quotas.core.ledger import Ask, Charge, Ledger
from quotas.core.tree import QueuePolicy

Place = tuple[int, float, str, str]
FairShareKey = tuple[int, float, Place]
"""Less is sooner."""
WITHIN, HIDES, BORROWS = range(3)
"""With its best job it stays within min, or hides one behind that would, or neither."""


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
    def shape(self) -> tuple[str, bool, tuple[tuple[str, int], ...]]:
        """Units of one shape get the same answer from the same ledger."""
        return self.leaf, self.charge.preemptible, tuple(self.charge.amounts.items())


@dataclass(frozen=True, slots=True)
class Head:
    """What a queue competes with."""

    unit: Unit
    asked: Ask


class FairShareKeys:
    """The claims of the nodes of one ledger, which it reads and never changes.

    A row has a handful of resources and is looked at once per job: plain numbers are several times faster here than arrays.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._min = ledger.min.tolist()
        self._guarded = ledger.guarded.tolist()
        self._promised = ledger.promised.tolist()
        self._claimed = [p and name not in COUNTS for p, name in zip(self._promised, ledger.resources, strict=True)]
        self._lendable = _lendable(ledger)
        nodes, by_path = ledger.tree.nodes, ledger.tree.by_path
        policies = [by_path[node.parent or node.path].attributes.queue_policy for node in nodes]
        self._takes_turns = [policy is QueuePolicy.ROUND for policy in policies]
        self._weights = [node.attributes.weight for node in nodes]
        self._jobs = ledger.column[MAX_JOBS]

    def of(self, row: int, bid: Head, hides: Callable[[int], object]) -> FairShareKey:
        """What the node at this row stands with among its siblings. ``hides``: whether one below a row stays within its min."""
        used: list[int] = self._ledger.held.used[row].tolist()
        within, share = self._stands(row, used, bid.asked)
        rank = WITHIN if within else HIDES if hides(row) else BORROWS
        return rank, float(used[self._jobs]) if self._takes_turns[row] else share, bid.unit.place

    def within(self, row: int, asked: Ask) -> bool:
        """Whether the node at this row stays within min with a job that asks this."""
        used: list[int] = self._ledger.held.used[row].tolist()
        return self._stands(row, used, asked)[0]

    def _stands(self, row: int, used: list[int], asked: Ask) -> tuple[bool, float]:
        """Whether the node stays within min with the job, and if not the dominant borrowed share divided by weight.

        A job that asks for anything that is promised to somebody is judged by that alone.
        """
        low, guarded, lendable = self._min[row], self._guarded[row], self._lendable[row]
        share, claims, over = 0.0, False, False
        for column, amount in asked:
            claims |= self._claimed[column]
            borrowed = used[column] + amount - low[column]
            if borrowed > 0 and guarded[column]:
                share = max(share, borrowed / lendable[column])
                over |= self._promised[column]
        within = not over and (claims or share == 0)
        return within, 0.0 if within else share / self._weights[row]


def _lendable(ledger: Ledger) -> list[list[int]]:  # [node][resource]
    """What a node and its siblings may have together: the least max from the parent up; at least one unit."""
    lendable = np.ones_like(ledger.max)
    for node in ledger.tree.nodes[1:]:
        lendable[ledger.row[node.path]] = np.maximum(ledger.max[ledger.way[node.parent]].min(axis=0), 1)
    listed: list[list[int]] = lendable.tolist()
    return listed
