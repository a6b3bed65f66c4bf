"""Amounts in use, as arrays [node, resource] of whole units: charged and released along the path from a leaf to the root.

Invariant: a node's use is the sum of its children's (I9). The ledger only counts: whether a charge is allowed
is `quotas.core.queues.admission`'s question. Resources that no node names are not counted; jobs always are.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quotas.core.trees.amounts import COUNTS, MAX_JOBS, UNLIMITED, Amounts
from quotas.core.trees.flavors import GPU, flavor_of
from quotas.core.trees.tree import Tree

Units = NDArray[np.int64]
Ask = tuple[tuple[int, int], ...]
"""(column, amount) of everything asked for that counts, in the order of the columns."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of each level of a path, from the leaf up, as plain numbers: faster than arrays for a single job."""

    min: list[list[int]]
    floor: list[list[int]]
    max: list[list[int]]
    kept: list[list[int]]
    idle: list[list[int]]
    """Zero use, to find out what would never fit."""


@dataclass(frozen=True, slots=True)
class Charge:
    """What one job takes of its leaf; ``amounts`` as `quotas.core.trees.amounts.of_job` makes them."""

    leaf: str
    amounts: Amounts
    preemptible: bool = True


@dataclass(frozen=True, slots=True)
class Held:
    """The use of a tree. Rows are nodes, columns resources."""

    used: Units
    firm: Units
    """The part of used that belongs to jobs which may not be preempted."""
    claims: Units
    """Of a leaf its use; of an inner node the sum of its children's `counted` claims."""

    @staticmethod
    def nothing(nodes: int, resources: int) -> "Held":
        used, firm, claims = np.zeros((3, nodes, resources), dtype=np.int64)
        return Held(used, firm, claims)

    def copy(self) -> "Held":
        return Held(self.used.copy(), self.firm.copy(), self.claims.copy())


class Ledger:
    """Mutable on purpose: a pass charges thousands of jobs. Rows stand in the order of ``tree.nodes``."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.resources = tuple(sorted({*tree.resources, MAX_JOBS}))
        self.column = {name: i for i, name in enumerate(self.resources)}
        self.row = {node.path: i for i, node in enumerate(tree.nodes)}
        self.parent = [self.row.get(node.parent, 0) for node in tree.nodes]  # [node]; the root is its own
        shape = len(tree.nodes), len(self.resources)
        self.min, self.kept = np.zeros((2, *shape), dtype=np.int64)  # [node, resource]
        self.max: Units = np.full(shape, UNLIMITED, dtype=np.int64)  # [node, resource]
        self.guarded = np.array([[name not in COUNTS for name in self.resources]] * shape[0])  # [node, resource]
        """Where min is a limit: a count that a node does not state in its min is neither guaranteed nor borrowed."""
        self._fill_limits()
        self.flavored = np.array([bool(flavor_of(name)) for name in self.resources])  # [resource]
        self.gpus = self.flavored | np.array([name == GPU for name in self.resources])  # [resource]
        self.has_flavors = bool(self.flavored.any())
        self.ignored = np.array([name in tree.without_min for name in self.resources])  # [resource]
        self.guarded[:, self.ignored] = False
        self.floor = np.where(self.guarded, self.min, UNLIMITED)  # [node, resource]
        """Min where it is a limit, and no limit elsewhere."""
        self.promised = np.asarray(self.min[1:].any(axis=0) & ~self.ignored)  # [resource]
        """Resources of which some node below the root has a min."""
        self.unstated = self._find_unstated()
        self.lends_all = not self.kept.any()
        self.path_rows = self._find_path_rows()
        self.rows = [self.path_rows[node.path].tolist() for node in tree.nodes]  # [node]
        self.leaf_rows = np.array([self.row[leaf.path] for leaf in tree.leaves], dtype=np.int64)
        self.limits = self._limits()
        self.idle = Held.nothing(*shape)
        self._claim_kept(self.idle)
        self.held = self.idle.copy()

    @cached_property
    def parents(self) -> Units:  # [node]
        """Of each node the row of its parent; the root is its own."""
        return np.array(self.parent, dtype=np.int64)

    @cached_property
    def by_depth(self) -> list[Units]:
        """The rows of all nodes but the root, those of one depth together, the least depth first."""
        depths = np.array([len(rows) for rows in self.rows])
        return [(depths == depth).nonzero()[0] for depth in range(2, int(depths.max()) + 1)]

    @cached_property
    def weights(self) -> NDArray[np.float64]:  # [node]
        return np.array([node.attributes.weight for node in self.tree.nodes], dtype=np.float64)

    @classmethod
    def from_charges(cls, tree: Tree, charges: Iterable[Charge] = ()) -> "Ledger":
        ledger = cls(tree)
        for charge in charges:
            ledger.charge(charge)
        return ledger

    def charge(self, charge: Charge) -> None:
        """Raises OverflowError, and charges nothing, when the sum is more than an amount can be."""
        ask, path_rows = self.vector(charge.amounts), self.path_rows[charge.leaf]
        if (ask > UNLIMITED - self.held.used[path_rows[-1]]).any():
            raise OverflowError(f"{charge.leaf} is charged more than {UNLIMITED}")
        self._add(ask, path_rows, charge.preemptible)

    def release(self, charge: Charge) -> None:
        """Raises ValueError, and releases nothing, when the leaf is not charged that much."""
        ask, path_rows = self.vector(charge.amounts), self.path_rows[charge.leaf]
        held = self.held.used if charge.preemptible else self.held.firm
        if (ask > held[path_rows[0]]).any():
            raise ValueError(f"{charge.leaf} gives back more than it was charged")
        self._add(-ask, path_rows, charge.preemptible)

    @contextmanager
    def charged(self, charges: Iterable[Charge]) -> Iterator[None]:
        """The ledger with these charges added; restored at the end."""
        before = self.held.copy()
        try:
            for charge in charges:
                self.charge(charge)
            yield
        finally:
            self.held = before

    @contextmanager
    def released(self, charges: Iterable[Charge]) -> Iterator[None]:
        """The ledger with these charges released; restored at the end."""
        before = self.held.copy()
        try:
            for charge in charges:
                self.release(charge)
            yield
        finally:
            self.held = before

    def used(self, path: str) -> dict[str, int]:
        """What a node and all below it use, resource by resource."""
        row = self.held.used[self.row[path]].tolist()
        return dict(zip(self.resources, row, strict=True))

    def vector(self, amounts: Amounts) -> Units:  # [resource]
        ask = [amounts.get(name, 0) for name in self.resources]
        if max(ask) > UNLIMITED:
            ask = [min(amount, UNLIMITED) for amount in ask]
        return np.array(ask, dtype=np.int64)

    def ask(self, amounts: Amounts) -> Ask:
        return tuple(
            [(column, amounts[name]) for name, column in self.column.items() if name in amounts and amounts[name]]
        )

    def counted(self, claims: Units, row: int) -> Units:  # [resource]
        """A node's claim on its parent: its own claims, and at least what it keeps back for itself."""
        counted: Units = np.maximum(claims, self.kept[row])
        return counted

    def _add(self, ask: Units, path_rows: Units, preemptible: bool) -> None:
        self.held.used[path_rows] += ask
        if not preemptible:
            self.held.firm[path_rows] += ask
        if self.lends_all:
            self.held.claims[path_rows] += ask
            return
        for row in path_rows.tolist():
            before = self.held.claims[row]
            after = before + ask
            ask = self.counted(after, row) - self.counted(before, row)
            self.held.claims[row] = after

    def _fill_limits(self) -> None:
        for node in self.tree.nodes:
            row = self.row[node.path]
            for name, amount in node.min.items():
                self.min[row, self.column[name]] = amount
                self.kept[row, self.column[name]] = node.held_back(name)
                self.guarded[row, self.column[name]] = True
            for name, amount in node.max.items():
                self.max[row, self.column[name]] = amount

    def _find_unstated(self) -> NDArray[np.bool_]:  # [node, resource]
        """What a node that has some min states none of, where it counts: others are promised it, or share a max of it."""
        stated = np.array([[name in node.min for name in self.resources] for node in self.tree.nodes])
        inner = np.array([node.path in self.tree.children for node in self.tree.nodes])
        shared = self.promised | (self.max[inner] < UNLIMITED).any(axis=0)
        some = np.asarray((self.min > 0).any(axis=1))
        return np.asarray(~stated & shared & ~self.ignored & some[:, None])

    def deciding(self, column: int, request: Iterable[int]) -> list[int]:
        """The columns, of those requested, whose min decides about a shortage in this one."""
        if not self.ignored[column]:
            return [column]
        return [asked for asked in request if self.gpus[asked] and not self.ignored[asked]]

    def deciding_columns(self, request: Units) -> Units:
        """Of each column the one whose min decides about it: the first, as jobs are on one flavor, or on some promised alike.

        Empty for a tree without flavors, where each decides about itself.
        """
        asked = request.nonzero()[0].tolist()
        columns = range(len(request)) if self.has_flavors else ()
        return np.array([next(iter(self.deciding(column, asked)), column) for column in columns], dtype=np.int64)

    def _find_path_rows(self) -> dict[str, Units]:
        """For each node the rows of its path up to the root, the node's own first."""
        return {
            node.path: np.array([self.row[each.path] for each in self.tree.to_root(node.path)], dtype=np.int64)
            for node in self.tree.nodes
        }

    def _limits(self) -> dict[str, Limits]:
        tables = [table.tolist() for table in (self.min, self.floor, self.max, self.kept)]
        nothing = [0] * len(self.resources)
        limits: dict[str, Limits] = {}
        for path, path_rows in self.path_rows.items():
            rows = path_rows.tolist()
            low, floor, high, reserved = ([table[row] for row in rows] for table in tables)
            limits[path] = Limits(low, floor, high, reserved, [nothing] * len(rows))
        return limits

    def _claim_kept(self, held: Held) -> None:
        """Set the claims of an idle tree: what the nodes below keep back for themselves."""
        for node in reversed(self.tree.nodes[1:]):
            row = self.row[node.path]
            held.claims[self.row[node.parent]] += self.counted(held.claims[row], row)
