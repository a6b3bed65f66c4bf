"""The states nodes can be in, and how many pods of every known shape a node in each state holds.

A state is a node class with what is free. Thousands of nodes share a few states, so everything is counted once a state:
fitting costs what states cost, not what nodes cost. It must not know which nodes there are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import mul
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from jobs.core.gang.requirements import NodeClass, PodRequirements

Vector = tuple[int, ...]
"""Whole units in the order of `States.names`, trailing zeros left out."""
Table = NDArray[np.int64]

T = TypeVar("T", bound=np.generic)

MANY = 1 << 24
"""As many as anybody could ask for."""

_NOBODY = 0
"""The rule of shapes that ask what no node has ever had."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Pods that ask alike; ``lone``: never two of them on one node."""

    ask: PodRequirements
    lone: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class State:
    row: int
    kind: int
    """Index of its node class."""
    free: Vector
    whole: bool
    """It has devices and all of them are free."""


class States:
    """Interned states and shapes. ``counts[row, 2c]`` is how many pods of column c fit, ``[row, 2c + 1]`` the same if whole."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.index: dict[str, int] = {}
        self.classes: list[NodeClass] = []
        self.rows: list[State] = []
        self.shapes: list[Shape] = []
        self.counts: NDArray[np.int32] = np.zeros((64, 16), dtype=np.int32)
        self.free: Table = np.zeros((64, 4), dtype=np.int64)
        """Free per state, ``[row, resource]``; nothing where the class is not usable or the node is over-committed."""
        self.worth: NDArray[np.float64] = np.zeros(64)
        """What is free, in one number, ``[row]``: devices before all else."""
        self.devices: Table = np.zeros(64, dtype=np.int64)
        """Devices of a whole node, nothing where a device is taken already, ``[row]``."""
        self.idle: Table = np.zeros(64, dtype=np.int64)
        """Free devices, ``[row]``."""
        self._weights: list[float] = []
        self._devices: list[list[tuple[int, int]]] = []
        """Per class, (resource, allocatable) of its devices."""
        self._kinds: dict[NodeClass, int] = {}
        self._known: dict[tuple[int, Vector], State] = {}
        self._columns: dict[Shape, int] = {}
        self._unknown: set[int] = set()
        """Columns that ask what no node has ever had."""
        self.epoch = 0
        """Moves on when columns are forgotten or classes renumbered."""
        self._asked = np.zeros((8, 4), dtype=np.int64)
        self._lone = np.zeros(8, dtype=np.bool_)
        self._rules: dict[object, int] = {}
        """Which nodes are allowed, without the amounts: few, however many shapes there are."""
        self._rule = np.zeros(8, dtype=np.int64)
        """``[column]`` → rule."""
        self._admits = np.zeros((8, 16), dtype=np.bool_)
        """``[rule, class]``; `_NOBODY` is the first rule."""
        self._examples: list[PodRequirements] = []
        self._kind = np.zeros(64, dtype=np.int64)
        """``[row]`` → class."""
        self.forget_shapes()

    def vector(self, amounts: Mapping[str, int]) -> Vector:
        """Amounts on the axis, which grows by names not seen before."""
        for name in amounts:
            if name not in self.index:
                self.index[name] = len(self.names)
                self.names.append(name)
                self._weights.append(self.weight(name))
                if self._unknown:
                    self.forget_shapes()
        dense = [0] * len(self.names)
        for name, amount in amounts.items():
            dense[self.index[name]] = amount
        return trimmed(dense)

    def amounts(self, vector: Vector) -> dict[str, int]:
        return {name: amount for name, amount in zip(self.names, vector, strict=False) if amount}

    @staticmethod
    def weight(name: str) -> float:
        """One device outweighs all cpu and memory of a node."""
        return 1000.0 if "/" in name else {"cpu": 1 / 2**12, "memory": 1 / 2**34}.get(name, 0.0)

    def kind(self, node: NodeClass) -> int:
        number = self._kinds.get(node)
        if number is None:
            number = self._kinds[node] = len(self.classes)
            self.classes.append(node)
            self.vector(dict(node.allocatable))
            self._devices.append([(self.index[name], amount) for name, amount in node.allocatable if "/" in name])
            if number >= self._admits.shape[1]:
                self._admits = _grown(self._admits, 1)
            for rule, ask in enumerate(self._examples, start=1):
                self._admits[rule, number] = ask.refusal(node) is None
        return number

    def _rule_of(self, ask: PodRequirements) -> int:
        key = (ask.selector, ask.terms, ask.tolerations, ask.avoids, ask.volumes)
        number = self._rules.get(key)
        if number is None:
            self._examples.append(ask)
            number = self._rules[key] = len(self._examples)
            if number >= len(self._admits):
                self._admits = _grown(self._admits, 0)
            self._admits[number, : len(self.classes)] = [ask.refusal(node) is None for node in self.classes]
        return number

    def state(self, kind: int, free: Vector) -> State:
        known = self._known.get((kind, free))
        return known if known is not None else self._new_state(kind, free)

    def _new_state(self, kind: int, free: Vector) -> State:
        row, node = len(self.rows), self.classes[kind]
        if row >= len(self.counts):
            self.counts, self.free = _grown(self.counts, 0), _grown(self.free, 0)
            self.worth, self.devices = _grown(self.worth, 0), _grown(self.devices, 0)
            self.idle, self._kind = _grown(self.idle, 0), _grown(self._kind, 0)
        while len(self.names) > self.free.shape[1]:
            self.free, self._asked = _grown(self.free, 1), _grown(self._asked, 1)
        dense = free if node.usable and min(free, default=0) >= 0 else tuple(max(f, 0) * node.usable for f in free)
        self.free[row] = 0
        self.free[row, : len(dense)] = dense
        full = self._devices[kind]
        left = [dense[i] if i < len(dense) else 0 for i, _ in full]
        whole = bool(full) and all(have >= amount for have, (_, amount) in zip(left, full, strict=True))
        state = State(row, kind, free, whole)
        self.worth[row] = sum(map(mul, dense, self._weights))
        self.idle[row] = sum(left)
        self.devices[row] = self.idle[row] if whole else 0
        self.rows.append(state)
        self._kind[row] = kind
        self._known[kind, free] = state
        if not (known := len(self.shapes)):
            return state
        counts = self._fitting(self.free[row], self._asked[:known], self._lone[:known])
        counts[~self._admits[self._rule[:known], kind]] = 0
        self.counts[row, : 2 * known : 2] = counts
        self.counts[row, 1 : 2 * known : 2] = counts * whole
        return state

    def column(self, shape: Shape) -> int | None:
        """Its column when it is counted already."""
        return self._columns.get(shape)

    def add(self, shape: Shape) -> int:
        """A new column, counted for every state."""
        column = len(self.shapes)
        known = all(name in self.index for name, _ in shape.ask.request)
        request = self.vector(dict(shape.ask.request)) if known else ()
        if not known:
            self._unknown.add(column)
        while len(request) > self.free.shape[1]:
            self.free, self._asked = _grown(self.free, 1), _grown(self._asked, 1)
        if column >= len(self._asked):
            self._asked, self._lone, self._rule = (
                _grown(self._asked, 0),
                _grown(self._lone, 0),
                _grown(self._rule, 0),
            )
            self.counts = _grown(self.counts, 1)
        self.shapes.append(shape)
        self._columns[shape] = column
        self._lone[column] = shape.lone
        self._asked[column] = 0
        self._asked[column, : len(request)] = request
        self._rule[column] = self._rule_of(shape.ask) if known else _NOBODY
        rows = len(self.rows)
        counts = self._fitting(self.free[:rows], self._asked[column], self._lone[column])
        counts[~self._admits[self._rule[column], self._kind[:rows]]] = 0
        self.counts[:rows, 2 * column] = counts
        self.counts[:rows, 2 * column + 1] = counts * (self.devices[:rows] > 0)
        return column

    def forget_shapes(self) -> None:
        """Starts the columns anew: what is still asked comes back with the next gang that asks it."""
        self.shapes.clear()
        self._columns.clear()
        self._unknown.clear()
        self._rules.clear()
        self._examples.clear()
        self.epoch += 1

    def keep(self, live: list[State]) -> dict[int, State]:
        """Drops all other states; old row → the state as it is now."""
        self.epoch += 1
        kinds = {kind: new for new, kind in enumerate(sorted({state.kind for state in live}))}
        rows = [state.row for state in live]
        live_states = {old.row: State(new, kinds[old.kind], old.free, old.whole) for new, old in enumerate(live)}
        for name in ("counts", "free", "worth", "devices", "idle"):
            setattr(self, name, _at_least(getattr(self, name)[rows]))
        self.rows = list(live_states.values())
        self._known = {(state.kind, state.free): state for state in self.rows}
        self._kind = _at_least(np.array([state.kind for state in self.rows], dtype=np.int64))
        self.classes = [self.classes[kind] for kind in kinds]
        self._devices = [self._devices[kind] for kind in kinds]
        self._kinds = {node: kind for kind, node in enumerate(self.classes)}
        self._admits[:, : len(kinds)] = self._admits[:, list(kinds)]
        return live_states

    @staticmethod
    def _fitting(free: Table, request: Table, lone: Any) -> Table:
        """How many pods fit: the scarcest of what they ask."""
        each = np.where(request > 0, free // np.maximum(request, 1), MANY)
        fitting: Table = np.minimum(each.min(axis=-1), np.where(lone, 1, MANY))
        return fitting


def trimmed(dense: list[int]) -> Vector:
    while dense and not dense[-1]:
        dense.pop()
    return tuple(dense)


def minus(free: Vector, request: Vector, times: int) -> Vector:
    """``free - times * asked``."""
    width = max(len(free), len(request))
    left = [*free, *(0,) * (width - len(free))]
    for i, amount in enumerate(request):
        left[i] -= times * amount
    return trimmed(left)


def _grown(table: NDArray[T], axis: int) -> NDArray[T]:
    """Twice as long along ``axis``, zeros behind."""
    return np.concatenate((table, np.zeros_like(table)), axis=axis)


def _at_least(table: NDArray[T]) -> NDArray[T]:
    missing = max(64 - len(table), 0)
    return np.concatenate((table, np.zeros((missing, *table.shape[1:]), dtype=table.dtype)))
