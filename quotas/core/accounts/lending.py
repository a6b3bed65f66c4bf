"""Which node lent how much to which: of one moment, and added up over a time. Pure.

A node borrows what it uses above its min. That comes from what its parent has beyond the mins of its children, from above, or
from the idle min of its siblings, of which each lends in proportion to what is idle. Amounts are of one resource.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np

_TOGETHER = 2**18
"""Amounts of one family that are added up at once."""
_PRODUCTS = 1000
"""So many products of two amounts take as long as one step."""


class Flow(NamedTuple):
    """Between two children of ``parent``.

    The parent as the lender: what no child's min contains, or what the parent borrows itself. The parent as the borrower: what
    is used beyond it.
    """

    parent: str
    lender: str
    borrower: str


@dataclass(frozen=True, slots=True)
class Family:
    """A node and its children."""

    path: str
    min: int
    children: Mapping[str, int]
    """The min of each child by its path."""


class TooMuchWork(Exception):
    """More steps than the caller has time for: a step is one child looked at once, or one pair of a sum that is read."""


Change = tuple[int, str, int]
"""When, at which leaf, and how much more is used there."""


def lent_by_child(family: Family, used: Mapping[str, int], beyond: int) -> dict[str, int]:
    """Of its min, what each child lends. ``beyond``: what the parent lends to its own siblings."""
    idle = [least - used.get(path, 0) for path, least in family.children.items()]
    return dict(zip(family.children, _lent(family.min, sum(family.children.values()), idle, beyond), strict=True))


def _lent(least: int, promised: int, idle: Sequence[int], beyond: int) -> list[int]:
    """``promised``: the mins of all children. ``idle``: of each, its min less what it uses."""
    borrowed = -sum(amount for amount in idle if amount < 0)
    from_above = max(0, promised - sum(idle) - least)
    return _shared(max(0, borrowed - from_above + beyond - max(0, least - promised)), idle)


def _shared(taken: int, idle: Sequence[int]) -> list[int]:
    """In proportion to what is idle, to the last unit, never more than is idle."""
    rest = sum(amount for amount in idle if amount > 0)
    left, shares = min(taken, rest), [0] * len(idle)
    if left:
        for place, amount in enumerate(idle):
            if amount > 0:
                shares[place] = share = left * amount // rest
                left, rest = left - share, rest - amount
    return shares


class _Moments:
    """What one family lent and borrowed at moments, each for how long, and the sums of them.

    Each borrower has the same share of each lender, so a moment is an outer product, and the sum of many a product of matrices.
    """

    def __init__(self, family: Family, begin: int) -> None:
        self.paths = [*family.children, family.path]
        """Of the lenders, and of the borrowers: the parent is the last of both."""
        self.lent: list[int] = [0] * len(family.children)
        self._places = {path: place for place, path in enumerate(family.children)}
        self._least, self._promised = family.min, sum(family.children.values())
        self._idle = list(family.children.values())
        self._beyond, self._since = 0, begin
        self._rows: list[tuple[list[int], list[int], float]] = []
        """What each lent, what each borrowed, and how long that lasted, divided by their total."""

    @property
    def is_full(self) -> bool:
        return len(self._rows) * len(self.paths) >= _TOGETHER

    def use(self, child: str, amount: int) -> None:
        self._idle[self._places[child]] -= amount

    def solve(self, beyond: int) -> None:
        """What each child lends from now on; ``beyond``: what the parent lends to its own siblings."""
        self.lent, self._beyond = _lent(self._least, self._promised, self._idle, beyond), beyond

    def close(self, at: int) -> None:
        """What is lent now has been so since the last moment. To be called before what is used is changed."""
        if at == self._since:
            return
        borrowed = [-amount if amount < 0 else 0 for amount in self._idle]
        total = sum(borrowed) + self._beyond
        if total:
            given = [*self.lent, total - sum(self.lent)]
            self._rows.append((given, [*borrowed, self._beyond], (at - self._since) / total))
        self._since = at

    def sums(self, steps: int) -> tuple[dict[Flow, float], int]:
        """Of the moments until now, which begin anew, and how many steps that took. Raises `TooMuchWork`."""
        if not self._rows:
            return {}, 0
        given, taken, lasted = (np.array(of, dtype=float) for of in zip(*self._rows, strict=True))
        lenders, borrowers = (np.flatnonzero(of.any(axis=0)) for of in (given, taken))
        pairs = len(lenders) * len(borrowers)
        needed = pairs + pairs * len(self._rows) // _PRODUCTS
        if needed > steps:
            raise TooMuchWork
        sums = (given[:, lenders] * lasted[:, np.newaxis]).T @ taken[:, borrowers]
        self._rows = []
        parent, lent, borrowed = self.paths[-1], *([self.paths[n] for n in of] for of in (lenders, borrowers))
        every = zip(*(places.tolist() for places in sums.nonzero()), strict=True)
        flows = {Flow(parent, lent[row], borrowed[column]): float(sums[row, column]) for row, column in every}
        flows.pop(Flow(parent, parent, parent), None)
        return flows, needed


class Lending:
    """Amounts lent times how long, while use changes. Only the families that a change reaches are computed again."""

    def __init__(self, families: Sequence[Family], used: Mapping[str, int], begin: int, steps: int) -> None:
        """``families``: parents before their children. ``used``: by leaf; others than the tree's count nowhere.

        Raises `TooMuchWork` here or later, when all of it together takes more steps.
        """
        self.steps_left = steps
        self._order = {family.path: number for number, family in enumerate(families)}
        self._parent = {child: family.path for family in families for child in family.children}
        self._lent: dict[str, int] = defaultdict(int)
        """Of the nodes with children."""
        self._moments = {family.path: _Moments(family, begin) for family in families}
        self.sums: dict[Flow, float] = defaultdict(float)
        self._change(begin, used.items(), set(self._moments))

    def change(self, at: int, changes: Iterable[tuple[str, int]]) -> None:
        """From now on so much more is used at these leaves."""
        self._change(at, changes, set())

    def close(self, at: int) -> dict[Flow, float]:
        """What was lent in all, until this moment."""
        for moments in self._moments.values():
            moments.close(at)
            self._add(moments)
        return self.sums

    def _change(self, at: int, changes: Iterable[tuple[str, int]], stale: set[str]) -> None:
        for leaf, amount in changes:
            path = leaf
            while amount and path in self._parent:
                child, path = path, self._parent[path]
                self._moments[path].close(at)
                self._moments[path].use(child, amount)
                stale.add(path)
        while stale:
            path = min(stale, key=self._order.__getitem__)
            stale.remove(path)
            stale |= self._solve(path, at)

    def _solve(self, path: str, at: int) -> set[str]:
        """Computes one family again; returns its children with families of their own that lend otherwise than before."""
        moments = self._moments[path]
        self.steps_left -= len(moments.lent)
        if self.steps_left < 0:
            raise TooMuchWork
        moments.close(at)
        if moments.is_full:
            self._add(moments)
        moments.solve(self._lent[path])
        differ = set()
        for child, amount in zip(moments.paths, moments.lent, strict=False):
            if child in self._moments and amount != self._lent[child]:
                self._lent[child] = amount
                differ.add(child)
        return differ

    def _add(self, moments: _Moments) -> None:
        sums, steps = moments.sums(self.steps_left)
        self.steps_left -= steps
        for flow, amount in sums.items():
            self.sums[flow] += amount


def add_up(
    eras: Sequence[tuple[int, Sequence[Family]]], changes: Iterable[Change], end: int, steps: int
) -> dict[Flow, float]:
    """From the first era's begin to ``end``: an era has the families it begins with. Earlier changes are its use at first.
    Eras stand in the order of their begins.

    Raises `TooMuchWork` where that takes more steps.
    """
    sums: dict[Flow, float] = defaultdict(float)
    used: dict[str, int] = defaultdict(int)
    ordered = [(at, list(of)) for at, of in groupby(sorted(changes), key=itemgetter(0)) if at < end]
    place = 0
    for number, (begin, families) in enumerate(eras):
        until = eras[number + 1][0] if number + 1 < len(eras) else end
        while place < len(ordered) and ordered[place][0] <= begin:
            _apply(used, ordered[place][1])
            place += 1
        lending = Lending(families, used, begin, steps)
        while place < len(ordered) and ordered[place][0] < until:
            at, of = ordered[place]
            lending.change(at, [(leaf, amount) for leaf, amount in _apply(used, of).items() if amount])
            place += 1
        for flow, amount in lending.close(until).items():
            sums[flow] += amount
        steps = lending.steps_left
    return dict(sums)


def _apply(used: dict[str, int], changes: Iterable[Change]) -> dict[str, int]:
    """Adds the changes of one moment; returns them by leaf."""
    by_leaf: dict[str, int] = defaultdict(int)
    for _, leaf, amount in changes:
        used[leaf] += amount
        by_leaf[leaf] += amount
    return by_leaf
