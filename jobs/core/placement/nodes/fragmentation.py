"""Expected fragmentation: how much of what a node has free is of no use to the pods that usually come.

The rule of FGD (Weng et al., USENIX ATC'23) with two changes that B2 was measured with. What a node's device model is asked
for by pods that can use no other is a price that all others pay there; without it they fill the scarce model. And the
growth is compared in coarse steps, equal ones by name: what is smaller than a step is noise of the expected mix, while going
by name keeps the last nodes whole. Devices may be shared in thousandths here; it knows neither engine nor states.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WHOLE = 1000
STEP = 250
"""Thousandths of a device; 160 and 250 do equally well in B2, below 80 and without steps it loses about a point."""


@dataclass(frozen=True, slots=True)
class Usual:
    """Pods that come often: what one asks, and its share of all that come."""

    cpu: int
    memory: int
    devices: int
    each: int
    """Thousandths of every device; `WHOLE` when it asks several."""
    models: frozenset[str]
    """Device models it can use; empty: all."""
    share: float


@dataclass(frozen=True, slots=True)
class Node:
    model: str
    cpu: int
    memory: int
    free: tuple[int, ...]
    """Thousandths free of each device, ascending."""

    def after(self, pod: Usual) -> "list[Node]":
        """Every different way to put the pod here."""
        if self.cpu < pod.cpu or self.memory < pod.memory or (pod.models and self.model not in pod.models):
            return []
        ways: set[tuple[int, ...]] = set()
        if not pod.devices:
            ways = {self.free}
        elif pod.devices == 1:
            ways = {_with(self.free, [at], pod.each) for at, have in enumerate(self.free) if have >= pod.each}
        elif len(whole := [at for at, have in enumerate(self.free) if have >= WHOLE]) >= pod.devices:
            ways = {_with(self.free, whole[: pod.devices], WHOLE)}
        return [Node(self.model, self.cpu - pod.cpu, self.memory - pod.memory, free) for free in sorted(ways)]


class Mix:
    """The pods that usually come, on a fleet with so many devices of each model."""

    def __init__(self, usual: Sequence[Usual], supply: dict[str, int]) -> None:
        self._cpu = np.array([u.cpu for u in usual])
        self._memory = np.array([u.memory for u in usual])
        self._devices = np.array([u.devices for u in usual])
        self._each = np.array([u.each for u in usual])
        self._share = np.array([u.share for u in usual]) / sum(u.share for u in usual)
        self._takes = {m: np.array([not u.models or m in u.models for u in usual], dtype=np.bool_) for m in supply}
        self._price = _prices(usual, supply)

    def stranded(self, node: Node) -> float:
        """Thousandths of a device that are free and of no use, expected over the next pod."""
        free: NDArray[np.int64] = np.array(node.free, dtype=np.int64)
        usable = free >= self._each[:, None]
        fits = (self._cpu <= node.cpu) & (self._memory <= node.memory) & self._takes[node.model]
        fits &= usable.sum(axis=1) >= self._devices
        lost = np.where(fits, (free * ~usable).sum(axis=1), free.sum())
        return float((self._share * np.where(self._devices > 0, lost, 0)).sum())

    def steps(self, before: float, after: float, node: Node, pod: Usual) -> int:
        """The growth of what is stranded, with the price of the node's model, in steps; the least is best."""
        price = 0.0 if pod.models else pod.devices * pod.each * self._price[node.model]
        return round((after - before + price) / STEP)


def _prices(usual: Sequence[Usual], supply: dict[str, int]) -> dict[str, float]:
    """Per model, how much of it is asked by pods that name their models, when the fleet is asked for all it has."""
    demand = sum(u.share * u.devices * u.each for u in usual)
    total = sum(supply.values())
    return {
        model: sum(u.share * u.devices * u.each / len(u.models) for u in usual if model in u.models)
        / demand
        * total
        / have
        for model, have in supply.items()
    }


def _with(free: tuple[int, ...], at: Sequence[int], taken: int) -> tuple[int, ...]:
    left = list(free)
    for i in at:
        left[i] -= taken
    return tuple(sorted(left))
