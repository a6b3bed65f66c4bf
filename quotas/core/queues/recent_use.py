"""What each leaf, or each user of a leaf, has used lately, and the order it gives to gangs that nodes are reserved for.

An order by present use alone gives what fits only one gang at a time to the same queue for ever: whenever it is free, no
queue uses any of it. Use therefore counts for a while after it has ended, and fades. It is computed from facts alone (runs that
ended, runs that go on), so that every process computes the same. Times are seconds on any clock.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from math import log
from typing import Generic, TypeVar

from quotas.core.accounts.ledger import Ledger
from quotas.core.queues.order import WITHIN, FairShareKeys, Head, Place, Unit

HALF_LIFE = 86400.0
"""After so many seconds use counts half."""
REMEMBERED = 5000
"""Ended runs that count, the latest: as many as are read when a process starts."""

LONGEST = 64
"""Half-lives between the moment that counts are kept for and the newest run."""

Key = tuple[bool, float, float, Place]


Account = TypeVar("Account", bound=Hashable)


class RecentUse(Generic[Account]):
    """GPU-seconds in runs that ended, faded, by account: a leaf, or a user of a leaf."""

    def __init__(self, half_life: float = HALF_LIFE, remembered: int | None = None) -> None:
        """``remembered``: how many runs count, the latest; None: as many as are remembered by default."""
        self._half_life, self._remembered = half_life, REMEMBERED if remembered is None else remembered
        self._runs: dict[Hashable, tuple[Account, float]] = {}
        """By run, its account and what it used, in GPU-seconds as they count at ``_origin``."""
        self._sums: dict[Account, float] = defaultdict(float)
        self._origin: float | None = None

    def ended(self, run: Hashable, account: Account, gpus: int, since: float, until: float) -> None:
        """Counts the run once, however often it is passed in."""
        origin = self._origin_for(until)
        self._drop(run)
        half_life = self._half_life
        counts = faded(gpus, since, until, until, half_life) * remaining(origin - until, half_life)
        self._runs[run] = account, counts
        self._sums[account] += counts
        for oldest in list(islice(self._runs, max(len(self._runs) - self._remembered, 0))):
            self._drop(oldest)

    def at(self, now: float) -> dict[Account, float]:
        """GPU-seconds by account, as they count now."""
        if self._origin is None:
            return {}
        fading = remaining(max(now - self._origin, 0.0), self._half_life)
        return {account: counts * fading for account, counts in self._sums.items()}

    def _origin_for(self, until: float) -> float:
        """The moment that counts are kept for; moved on so that none outgrows a number, however late a run ends."""
        if self._origin is not None and until <= self._origin + LONGEST * self._half_life:
            return self._origin
        fading = 0.0 if self._origin is None else remaining(until - self._origin, self._half_life)
        self._runs = {run: (account, counts * fading) for run, (account, counts) in self._runs.items()}
        self._sums, self._origin = defaultdict(float), until
        for account, counts in self._runs.values():
            self._sums[account] += counts
        return until

    def _drop(self, run: Hashable) -> None:
        if run in self._runs:
            account, counts = self._runs.pop(run)
            self._sums[account] -= counts


def remaining(seconds: float, half_life: float = HALF_LIFE) -> float:
    """The share of a use that still counts so much later."""
    return float(2 ** -(seconds / half_life))


def faded(gpus: int, since: float, until: float, now: float, half_life: float = HALF_LIFE) -> float:
    """GPU-seconds of a run as they count now: each second fades by itself. Nothing where a clock was set back in between."""
    lasting = remaining(now - until, half_life) - remaining(now - min(since, until), half_life)
    return gpus * lasting * half_life / log(2)


Stretch = tuple[Account, int, float, float]
"""GPUs of an account, from when, until when."""


def history(
    stretches: Iterable[Stretch[Account]], times: Sequence[float], half_life: float
) -> dict[Account, list[float]]:
    """GPU-seconds by account as they counted at each of these moments, which stand in their order."""
    added: dict[Account, list[float]] = defaultdict(lambda: [0.0] * len(times))
    for account, gpus, since, until in stretches:
        for place in range(bisect_left(times, min(since, until)), len(times)):
            begin = max(since, times[place - 1]) if place else since
            if begin >= until and place:
                break
            added[account][place] += faded(gpus, begin, min(until, times[place]), times[place], half_life)
    for counts in added.values():
        for place in range(1, len(times)):
            counts[place] += counts[place - 1] * remaining(times[place] - times[place - 1], half_life)
    return dict(added)


def in_order(
    ledger: Ledger, units: Iterable[Unit], used: Mapping[str, float], will_use: Mapping[str, float]
) -> list[Unit]:
    """At every node: children that stay within min first, then the least recent use divided by weight, then by present share.

    ``used`` are GPU-seconds by leaf; ``will_use`` what each unit adds, by id. Within a leaf the units keep its own order.
    """
    return list(_Order(ledger, used, will_use).below(sorted(units, key=lambda unit: unit.place), 0))


class _Order:
    def __init__(self, ledger: Ledger, used: Mapping[str, float], will_use: Mapping[str, float]) -> None:
        self._ledger, self._keys, self._will_use = ledger, FairShareKeys(ledger), will_use
        self._used: dict[int, float] = defaultdict(float)
        for leaf in used.keys() & ledger.path_rows.keys():
            for row in ledger.path_rows[leaf].tolist():
                self._used[row] += used[leaf]

    def below(self, units: Iterable[Unit], depth: int) -> Iterator[Unit]:
        """The units below one node, which stands ``depth`` levels below the root, in order."""
        sides: dict[int, list[Unit]] = defaultdict(list)
        for unit in units:
            path = self._ledger.path_rows[unit.leaf]
            if len(path) == depth + 1:
                yield unit
            else:
                sides[int(path[-depth - 2])].append(unit)
        heads = ([(self._key(row, unit), unit) for unit in self.below(side, depth + 1)] for row, side in sides.items())
        yield from (unit for _, unit in merge(*heads, key=lambda head: head[0]))

    def _key(self, row: int, unit: Unit) -> Key:
        request = self._ledger.ask(unit.charge.amounts)
        rank, _, share, place = self._keys.compute_key(row, Head(unit, request), lambda _: None)
        lately = self._keys.by_weight(row, self._used[row] + self._will_use.get(unit.id, 0.0))
        return rank != WITHIN, lately, share, place
