"""Use above the limits of a tree: where it is, and which jobs are evicted until it is within them.

An edit may lower a limit below what is in use. The attribute ``excess`` of the node says what follows: the edit is refused;
or nothing starts there until enough jobs have ended; or jobs are evicted as by reclaim: only of queues above their min below
that node, the lowest priority first, then those that together lose the least work. Such queues exist whenever the node is above
its max, since the mins below it fit into its own. Jobs that may not be preempted are never evicted.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from quotas.core.accounts.ledger import Ledger
from quotas.core.queues.admission import Bound
from quotas.core.reclaiming import covering
from quotas.core.reclaiming.candidates import Candidates, Running
from quotas.core.reclaiming.targeting import OVERSIZE
from quotas.core.trees.amounts import format_amount
from quotas.core.trees.tree import ExcessPolicy

Cell = tuple[int, int]
"""(row, column) of the ledger."""


class Cause(StrEnum):
    """Why a job is evicted by an edit of the tree."""

    ABOVE_MAX = "AboveMax"
    """A node above it is above its max."""
    WITHOUT_LEAF = "WithoutLeaf"
    """Its leaf was removed."""


@dataclass(frozen=True, slots=True)
class Overrun:
    """A node with more in use than one of its limits allows."""

    path: str
    resource: str
    used: int
    """For the bound `MIN` by jobs that may not be preempted."""
    limit: int
    bound: Bound
    policy: ExcessPolicy
    evictable: bool
    """Whether evictions can bring it within its limit."""

    @property
    def is_refused(self) -> bool:
        """Whether the edit that leads to it is refused."""
        return self.policy is ExcessPolicy.REFUSE or (self.policy is ExcessPolicy.TAKE_BACK and not self.evictable)

    @property
    def message(self) -> str:
        limit = f"{self.bound.value} {format_amount(self.resource, self.limit)}"
        firm = " by jobs that may not be preempted" if self.bound is Bound.MIN else ""
        return f"{self.path} has {limit}, with {format_amount(self.resource, self.used)} used{firm}"


@dataclass(frozen=True, slots=True)
class Surplus:
    """A job to evict, and the node and resource that are above max with it."""

    job: Running
    overrun: Overrun


def find_overruns(ledger: Ledger) -> Iterator[Overrun]:
    """Every node above one of its limits, parents first: its max, or by jobs that may not be preempted its min."""
    held, floor = ledger.held, np.where(ledger.guarded, ledger.min, ledger.held.firm)
    for bound, used, limits in ((Bound.MAX, held.used, ledger.max), (Bound.MIN, held.firm, floor)):
        for row, column in np.argwhere(used > limits).tolist():
            yield _overrun(ledger, (row, column), bound)


def plan_evictions(ledger: Ledger, running: Iterable[Running], cells: Iterable[Cell] | None = None) -> list[Surplus]:
    """The jobs to evict until no node whose policy is `TAKE_BACK`, or none of ``cells``, is above its max.

    Leaves the ledger as it was. A node stays above its max where jobs that may not be preempted are all that is left.
    """
    watched = _taking_back(ledger) if cells is None else _mask(ledger, cells)
    if not (watched & (ledger.held.used > ledger.max)).any():
        return []
    return _Evictions(ledger, Candidates(ledger, running), watched).run()


def takes_back(ledger: Ledger) -> bool:
    """Whether a node is above its max whose policy is `TAKE_BACK`."""
    return bool((_taking_back(ledger) & (ledger.held.used > ledger.max)).any())


def cells_of(ledger: Ledger, overrun: Overrun) -> Cell:
    return ledger.row[overrun.path], ledger.column[overrun.resource]


class _Evictions:
    """Releases the charges of the chosen jobs as it goes."""

    def __init__(self, ledger: Ledger, candidates: Candidates, watched: NDArray[np.bool_]) -> None:
        self._ledger, self._candidates, self._watched = ledger, candidates, watched
        self._paths = [frozenset(ledger.rows[leaf]) for leaf in candidates.leaf.tolist()]
        self._chosen: dict[int, Overrun] = {}

    def run(self) -> list[Surplus]:
        above: list[Cell] = [(row, column) for row, column in np.argwhere(self._over()).tolist()]
        overruns = [_overrun(self._ledger, cell, Bound.MAX) for cell in above]
        with self._ledger.released([]):
            # Children first: what goes for a child's max counts for that of its parents too.
            for cell, overrun in zip(above[::-1], overruns[::-1], strict=True):
                while self._lack(cell) > 0 and self._choose_some(cell, overrun):
                    pass
            self._drop_unnecessary()
        return [Surplus(self._candidates.jobs[position], overrun) for position, overrun in self._chosen.items()]

    def _lack(self, cell: Cell) -> int:
        return int(self._ledger.held.used[cell] - self._ledger.max[cell])

    def _choose_some(self, cell: Cell, overrun: Overrun) -> bool:
        """Chooses a cheapest set; a job whose queue is no longer above its min by then stays. Whether any was chosen."""
        before = len(self._chosen)
        for position in self._cheapest(self._borrowing(cell), cell):
            if self._lack(cell) > 0 and self._may_go(position, cell):
                self._chosen[position] = overrun
                self._ledger.release(self._candidates.jobs[position].charge)
        return len(self._chosen) > before

    def _borrowing(self, cell: Cell) -> list[int]:
        """Positions of the jobs that may go for this node and resource."""
        sizes = self._candidates.sizes[:, cell[1]]
        return [i for i in sizes.nonzero()[0].tolist() if i not in self._chosen and self._may_go(i, cell)]

    def _may_go(self, position: int, cell: Cell) -> bool:
        """Whether every node from the job's leaf up to this one, itself left out, is above its min."""
        row, column = cell
        if row not in self._paths[position]:
            return False
        rows = self._ledger.rows[int(self._candidates.leaf[position])]
        below, asked = rows[: rows.index(row)], self._candidates.sizes[position].nonzero()[0].tolist()
        columns = self._ledger.deciding(column, asked)
        above = [(self._ledger.held.claims[below, each] > self._ledger.min[below, each]).all() for each in columns]
        return any(above) or not columns

    def _cheapest(self, positions: Sequence[int], cell: Cell) -> Iterator[int]:
        """The lowest priorities whole, and of the last one needed the cheapest set; oversized gangs after the others."""
        known, need = self._candidates, self._lack(cell)
        among = np.array(positions, dtype=np.int64)
        sizes = known.sizes[among, cell[1]]
        priority, oversize = known.priority[among], sizes >= OVERSIZE * need
        tiers = sorted(set(zip(priority.tolist(), oversize.tolist(), strict=True)))
        for tier in tiers:
            alike = (priority == tier[0]) & (oversize == tier[1])
            if int(sizes[alike].sum()) >= need:
                yield from among[alike][covering.cheapest(sizes[alike], known.cost[among[alike]], need)].tolist()
                return
            need -= int(sizes[alike].sum())
            yield from among[alike].tolist()

    def _drop_unnecessary(self) -> None:
        """Spares, the most valuable first, each chosen job whose nodes stay within their max although it runs on."""
        for position in list(self._chosen)[::-1]:
            charge = self._candidates.jobs[position].charge
            self._ledger.charge(charge)
            uses = self._candidates.sizes[position] > 0
            if (self._over()[self._ledger.path_rows[charge.leaf]] & uses).any():
                self._ledger.release(charge)
            else:
                del self._chosen[position]

    def _over(self) -> NDArray[np.bool_]:
        return np.asarray(self._watched & (self._ledger.held.used > self._ledger.max))


def _overrun(ledger: Ledger, cell: Cell, bound: Bound) -> Overrun:
    row, column = cell
    used, limit = (ledger.held.used, ledger.max) if bound is Bound.MAX else (ledger.held.firm, ledger.min)
    evictable = bound is Bound.MAX and bool(ledger.held.firm[cell] <= ledger.max[cell])
    node = ledger.tree.nodes[row]
    about = node.path, ledger.resources[column], int(used[cell]), int(limit[cell])
    return Overrun(*about, bound, node.attributes.excess, evictable)


def _taking_back(ledger: Ledger) -> NDArray[np.bool_]:  # [node, resource]
    rows = np.array([node.attributes.excess is ExcessPolicy.TAKE_BACK for node in ledger.tree.nodes])
    return np.broadcast_to(rows[:, None], ledger.max.shape)


def _mask(ledger: Ledger, cells: Iterable[Cell]) -> NDArray[np.bool_]:  # [node, resource]
    mask = np.zeros(ledger.max.shape, dtype=np.bool_)
    for cell in cells:
        mask[cell] = True
    return mask
