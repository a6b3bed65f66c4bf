"""The order of jobs: in one queue by priority, time and name; across queues by guarantee and borrowed share.

At every node of the tree its children compete with their best job: first those that stay within min with it, then the least
dominant borrowed share after admission divided by weight, then priority, time and name. A queue whose best job would borrow
comes before other borrowers if a job behind its best one stays within min, whose guarantee would else be lent to others; but
after the queues within min, which would reclaim at once what its best job gets. Within min is judged in guaranteed resources
only, as reclaim does. A child's key depends on nothing but its own use, so an admission changes only the keys on its path.
Where the policy is Round, the child that uses least of anything, divided by weight, is next instead: taking turns by size,
without state that could be lost.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np

from quotas.core.accounts import unstated
from quotas.core.accounts.ledger import Ask, Charge, Ledger
from quotas.core.accounts.queue_use import QueueUse
from quotas.core.trees.amounts import COUNTS, MAX_JOBS, UNLIMITED
from quotas.core.trees.tree import QueuePolicy

Place = tuple[int, float, str, str]
FairShareKey = tuple[int, float, float, Place]
"""(rank, use over time, present share, place); smaller comes first."""
_AFTER_ALL = 1e12
"""More than any share or recent use divided by a weight."""
WITHIN, HIDES, BORROWS = range(3)
"""First element of the key: with its best job the node stays within min; or hides a job behind that would; or borrows."""


@dataclass(frozen=True)
class Unit:
    """A job's place in a queue."""

    id: str
    name: str
    charge: Charge
    priority: int
    queued_at: datetime
    user: str = ""
    has_claimed: bool = False
    """Others were stopped so that it may borrow: it has this right once (`quotas.core.reclaiming.borrowers`)."""
    stopped_for: str = ""
    """The id of the job that it was stopped for, since it last started."""
    choices: tuple[Charge, ...] = ()
    """What it may be charged, by flavor, in the order in which they are tried; empty: ``charge``. For simulations."""

    @cached_property
    def place(self) -> Place:
        return (-self.priority, self.queued_at.timestamp(), self.name, self.id)

    @property
    def leaf(self) -> str:
        return self.charge.leaf

    @property
    def claim(self) -> tuple[bool, str]:
        """What its right against queues that borrow depends on."""
        return self.has_claimed, "" if self.has_claimed else self.stopped_for

    @cached_property
    def shape(self) -> tuple[object, ...]:
        """Units of one shape get the same answer from the same ledger."""
        choices = tuple(tuple(charge.amounts.items()) for charge in self.choices)
        return self.leaf, self.charge.preemptible, tuple(self.charge.amounts.items()), choices


@dataclass(frozen=True, slots=True)
class Head:
    """The best job of a queue or node, with which it competes."""

    unit: Unit
    asked: Ask


class FairShareKeys:
    """Computes the fair-share keys of the nodes of one ledger, which it never changes.

    A row has a handful of resources and is looked at once per job: plain numbers are several times faster here than arrays.
    """

    def __init__(self, ledger: Ledger, use: QueueUse | None = None) -> None:
        """``use`` is given where the tree shares by use over time."""
        self._ledger, self._use = ledger, use
        self._floor = ledger.floor.tolist()
        self._promised = ledger.promised.tolist()
        self._claimed = [p and name not in COUNTS for p, name in zip(self._promised, ledger.resources, strict=True)]
        self._unstated: list[bool] = np.asarray(ledger.unstated.any(axis=1)).tolist()
        self._lendable = _lendable(ledger)
        nodes, by_path = ledger.tree.nodes, ledger.tree.by_path
        policies = [by_path[node.parent or node.path].attributes.queue_policy for node in nodes]
        self._takes_turns = [policy is QueuePolicy.ROUND for policy in policies]
        self._weights = [node.attributes.weight for node in nodes]
        self._jobs = ledger.column[MAX_JOBS]
        self._consumed = [i for i, name in enumerate(ledger.resources) if name not in COUNTS]

    def compute_key(self, row: int, head: Head, hides: Callable[[int], object]) -> FairShareKey:
        """The key of the node at this row among its siblings. ``hides``: whether a job below a row stays within its min."""
        used: list[int] = self._ledger.held.used[row].tolist()
        within, share = self._share(row, used, head.asked)
        rank = WITHIN if within else HIDES if hides(row) else BORROWS
        lately = 0.0
        if self._use is not None and not within and self._use.counts[row]:
            lately = self.by_weight(row, self._use.by_row[row] + self._use.expected(head.unit.id))
        return rank, lately, self._turn(row, used) if self._takes_turns[row] else share, head.unit.place

    def stays_within_min(self, row: int, request: Ask) -> bool:
        """Whether the node at this row stays within min with a job that asks this."""
        used: list[int] = self._ledger.held.used[row].tolist()
        return self._share(row, used, request)[0]

    def _share(self, row: int, used: list[int], request: Ask) -> tuple[bool, float]:
        """Whether the node stays within min with the job, and if not the dominant borrowed share divided by weight.

        A job that asks for a guaranteed resource is judged by guaranteed resources alone.
        """
        low, lendable, claimed, promised = self._floor[row], self._lendable[row], self._claimed, self._promised
        share, claims = 0.0, False
        over: list[int] = []
        for column, amount in request:
            claims = claims or claimed[column]
            borrowed = used[column] + amount - low[column]
            if borrowed > 0:
                part = borrowed / lendable[column]
                share = part if part > share else share
                if promised[column]:
                    over.append(column)
        if (
            over
            and self._unstated[row]
            and unstated.are_covered(self._ledger, row, over, [each for each, _ in request])
        ):
            over = []
        within = not over and (claims or share == 0)
        if within:
            return True, 0.0
        weight = self._weights[row]
        return False, share / weight if weight else _AFTER_ALL + share

    def _turn(self, row: int, used: list[int]) -> float:
        """The dominant share of what the node uses, divided by weight; where none of that is counted, its jobs."""
        lendable = self._lendable[row]
        share = max((used[i] / lendable[i] for i in self._consumed), default=0.0)
        return self.by_weight(row, share or used[self._jobs] / UNLIMITED)

    def by_weight(self, row: int, amount: float) -> float:
        """The amount divided by the weight of the node at this row. Weight 0 comes after all others."""
        weight = self._weights[row]
        return amount / weight if weight else _AFTER_ALL + amount


def _lendable(ledger: Ledger) -> list[list[int]]:  # [node][resource]
    """What a node and its siblings may have together: the least max from the parent up; at least one unit."""
    lendable = np.ones_like(ledger.max)
    for node in ledger.tree.nodes[1:]:
        lendable[ledger.row[node.path]] = np.maximum(ledger.max[ledger.path_rows[node.parent]].min(axis=0), 1)
    listed: list[list[int]] = lendable.tolist()
    return listed
