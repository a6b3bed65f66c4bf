"""Which nodes check each other in which round, and which are faulty by the results. Pure: no clock, no network, no chance.

A check takes two nodes, and a failed one does not say which of them is at fault. So those that failed are checked again, each
with another node that is known to work, until every node has worked with another or has failed with one that works. The public
check stops after two rounds, which is too early for odd numbers of nodes and for several faults.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low

OK, FAULTY, SLOW, UNKNOWN = "ok", "faulty", "slow", "unknown"
MOST_ROUNDS = 8
SLOW_RATIO = 2.0
"""A node is slow if even its best time is longer than so many times the median."""
LEAST_SLOW_S = 0.5
"""And so much longer than the median at least: below, it is noise."""


@dataclass(frozen=True)
class Result:
    """How the check of one group of nodes went."""

    nodes: tuple[int, ...]
    ok: bool
    seconds: Mapping[int, float] = field(default_factory=dict)
    """By node, of a check that went well."""


def next_groups(nodes: int, results: Sequence[Result], rounds: int = 0) -> list[tuple[int, ...]]:
    """The groups of the next round; none: more rounds would not say more. ``rounds`` were made before."""
    if nodes < 2 or rounds >= MOST_ROUNDS:
        return []
    if not results:
        return _adjacent(nodes)
    known = _Known(nodes, results)
    unsettled = [node for node in range(nodes) if not known.is_settled(node)]
    if known.good:
        fastest_first = sorted(known.good, key=lambda node: (known.best.get(node, 0.0), node))
        return list(zip(fastest_first, unsettled))  # noqa: B905 - also for Python 3.9; the shorter one ends it
    return list(_untried(unsettled, results))


def verdicts(nodes: int, results: Sequence[Result]) -> dict[int, str]:
    """By node `OK`, `FAULTY`, `SLOW`, or `UNKNOWN` where no check has set it apart from the node that it failed with."""
    known = _Known(nodes, results)
    return {node: known.verdict(node) for node in range(nodes)}


def _adjacent(nodes: int) -> list[tuple[int, ...]]:
    """Pairs; the last one is joined by the node that is left."""
    groups: list[tuple[int, ...]] = [(node, node + 1) for node in range(0, nodes - 1, 2)]
    if nodes % 2:
        groups[-1] = (*groups[-1], nodes - 1)
    return groups


def _untried(nodes: Iterable[int], results: Iterable[Result]) -> Iterator[tuple[int, ...]]:
    """Pairs of these nodes that were not checked as a pair."""
    tried = {result.nodes for result in results}
    left = list(nodes)
    while left:
        first = left.pop(0)
        other = next((node for node in left if (first, node) not in tried), None)
        if other is not None:
            left.remove(other)
            yield first, other


class _Known:
    """What the results say."""

    def __init__(self, nodes: int, results: Sequence[Result]) -> None:
        self.results = results
        self.best: dict[int, float] = {}
        passed: set[int] = set()
        for result in results:
            if result.ok:
                passed.update(result.nodes)
                for node, seconds in result.seconds.items():
                    self.best[node] = min(seconds, self.best.get(node, seconds))
        self.passed = passed
        self.slow = _slow(self.best)
        self.good = passed - self.slow

    def is_settled(self, node: int) -> bool:
        return node in self.good or self._is_shown(node)

    def verdict(self, node: int) -> str:
        if node in self.good:
            return OK
        if node in self.passed:
            return SLOW if self._is_shown(node) else OK
        return FAULTY if self._is_shown(node) else UNKNOWN

    def _is_shown(self, node: int) -> bool:
        """Whether the node failed, or was slow, with nodes that work well: so it is not they."""
        is_ok = node in self.passed
        groups = [result for result in self.results if node in result.nodes and result.ok == is_ok]
        return any(all(other == node or other in self.good for other in group.nodes) for group in groups)


def _slow(best: Mapping[int, float]) -> set[int]:
    if len(best) < 3:
        return set()
    usual = median_low(best.values())
    limit = max(SLOW_RATIO * usual, usual + LEAST_SLOW_S)
    return {node for node, seconds in best.items() if seconds > limit}
