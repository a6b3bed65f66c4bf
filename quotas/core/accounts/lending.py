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
    """More steps than the caller has time for: a step is one child, or one pair of lender and borrower, looked at once."""


Change = tuple[int, str, int]
"""When, at which leaf, and how much more is used there."""


def lent_by_child(family: Family, used: Mapping[str, int], beyond: int) -> dict[str, int]:
    """Of its min, what each child lends. ``beyond``: what the parent lends to its own siblings."""
    own = max(0, family.min - sum(family.children.values()))
    borrowed = sum(max(0, used.get(path, 0) - least) for path, least in family.children.items())
    from_above = max(0, sum(used.get(path, 0) for path in family.children) - family.min)
    taken = max(0, borrowed - from_above + beyond - own)
    return _shared(taken, {path: max(0, least - used.get(path, 0)) for path, least in family.children.items()})


def flows(family: Family, used: Mapping[str, int], lent: Mapping[str, int], beyond: int) -> dict[Flow, float]:
    """What each lender gives each borrower: every borrower has the same share of each lender."""
    sinks = {path: use - least for path, least in family.children.items() if (use := used.get(path, 0)) > least}
    if beyond:
        sinks[family.path] = beyond
    if not (total := sum(sinks.values())):
        return {}
    sources = {**lent, family.path: total - sum(lent.values())}
    return {
        Flow(family.path, lender, borrower): amount * sink / total
        for lender, amount in sources.items()
        for borrower, sink in sinks.items()
        if amount > 0 and not lender == borrower == family.path
    }


class Lending:
    """Amounts lent times how long, while use changes. Only the families that a change reaches are computed again."""

    def __init__(self, families: Sequence[Family], used: Mapping[str, int], begin: int, steps: int) -> None:
        """``families``: parents before their children. ``used``: by leaf; others than the tree's count nowhere.

        Raises `TooMuchWork` here or later, when all of it together takes more steps.
        """
        self.steps_left = steps
        self._families = {family.path: family for family in families}
        self._order = {family.path: number for number, family in enumerate(families)}
        self._parent = {child: family.path for family in families for child in family.children}
        self._used: dict[str, int] = defaultdict(int)
        self._lent: dict[str, int] = defaultdict(int)
        self._flows: dict[str, dict[Flow, float]] = {}
        self._since: dict[str, int] = {}
        self.sums: dict[Flow, float] = defaultdict(float)
        self._change(begin, used.items(), set(self._families))

    def change(self, at: int, changes: Iterable[tuple[str, int]]) -> None:
        """From now on so much more is used at these leaves."""
        self._change(at, changes, set())

    def close(self, at: int) -> dict[Flow, float]:
        """What was lent in all, until this moment."""
        for path in self._flows:
            self._settle(path, at)
        return self.sums

    def _change(self, at: int, changes: Iterable[tuple[str, int]], stale: set[str]) -> None:
        for leaf, amount in changes:
            path = leaf
            while amount and path in self._parent:
                self._used[path] += amount
                path = self._parent[path]
                stale.add(path)
        while stale:
            path = min(stale, key=self._order.__getitem__)
            stale.remove(path)
            stale |= self._solve(path, at)

    def _solve(self, path: str, at: int) -> set[str]:
        """Computes one family again; returns its children with families of their own that lend otherwise than before."""
        self._settle(path, at)
        family, beyond = self._families[path], self._lent[path]
        lent = lent_by_child(family, self._used, beyond)
        self._flows[path] = flows(family, self._used, lent, beyond)
        self.steps_left -= len(family.children) + len(self._flows[path])
        if self.steps_left < 0:
            raise TooMuchWork
        differ = {child for child, amount in lent.items() if amount != self._lent[child]}
        self._lent |= lent
        return differ & self._families.keys()

    def _settle(self, path: str, at: int) -> None:
        lasted = at - self._since.get(path, at)
        for flow, amount in self._flows.get(path, {}).items() if lasted > 0 else ():
            self.sums[flow] += amount * lasted
        self._since[path] = at


def add_up(
    eras: Sequence[tuple[int, Sequence[Family]]], changes: Iterable[Change], end: int, steps: int
) -> dict[Flow, float]:
    """From the first era's begin to ``end``: an era has the families it begins with. Earlier changes are its use at first.

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


def _shared(taken: int, idle: Mapping[str, int]) -> dict[str, int]:
    """In proportion to what is idle, to the last unit, never more than is idle."""
    rest = sum(idle.values())
    left, shares = min(taken, rest), {}
    for path, amount in idle.items():
        shares[path] = left * amount // rest if rest else 0
        left, rest = left - shares[path], rest - amount
    return shares
