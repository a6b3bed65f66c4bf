"""Merges the stacks of all ranks of a job into one tree, and names the ranks that are missing where the others wait. Pure.

Each line is a frame, ``function@source@ranks|others``: the ranks that have it in one of their threads, and those that do not,
as the viewer of xpu_timer writes them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from jobs.runtime.dumps import Frame, Stack

MOST_NODES = 20_000
"""Frames of the tree: a job that writes more gets a tree of the first ones."""


@dataclass(frozen=True, slots=True)
class Line:
    """A frame of the merged tree; its depth is that of its callers."""

    depth: int
    frame: Frame
    ranks: frozenset[int]
    others: frozenset[int]

    def __str__(self) -> str:
        return f"{self.frame.function}@{self.frame.source}@{fold(self.ranks)}|{fold(self.others)}"


@dataclass(slots=True)
class _Node:
    ranks: set[int] = field(default_factory=set)
    children: dict[Frame, "_Node"] = field(default_factory=dict)


class Tree:
    """The stacks that were added, as a tree of frames, each with the ranks that have it."""

    def __init__(self) -> None:
        self._root = _Node()
        self._size = 0
        self.is_cut = False
        """Whether frames are missing because there were too many."""

    @property
    def ranks(self) -> frozenset[int]:
        return frozenset(self._root.ranks)

    def add(self, rank: int, stacks: Iterable[Stack]) -> None:
        for stack in stacks:
            node = self._root
            node.ranks.add(rank)
            for frame in stack:
                child = node.children.get(frame)
                if child is None:
                    if self._size >= MOST_NODES:
                        self.is_cut = True
                        break
                    child = node.children[frame] = _Node()
                    self._size += 1
                node = child
                node.ranks.add(rank)

    def lines(self) -> Iterator[Line]:
        """Callers before what they call; of several, what most ranks have first."""
        everyone = self.ranks
        pending = [(0, frame, node) for frame, node in reversed(_in_order(self._root.children))]
        while pending:
            depth, frame, node = pending.pop()
            ranks = frozenset(node.ranks)
            yield Line(depth, frame, ranks, everyone - ranks)
            pending += [(depth + 1, inner, child) for inner, child in reversed(_in_order(node.children))]

    def suspects(self) -> frozenset[int]:
        """The ranks that are missing where most of the others are: those wait for them. Empty: no such place.

        Of several places the one that most ranks have counts.
        """
        everyone = self.ranks
        shared = (line for line in self.lines() if len(line.ranks) < len(everyone) < 2 * len(line.ranks))
        most = max(shared, key=lambda line: len(line.ranks), default=None)
        return most.others if most else frozenset()


def _in_order(children: Mapping[Frame, _Node]) -> list[tuple[Frame, _Node]]:
    return sorted(children.items(), key=lambda item: (-len(item[1].ranks), item[0].function, item[0].source))


def fold(ranks: Collection[int]) -> str:
    """``1-3/9/11-15``: the ranks in order, each run of consecutive ones as its ends."""
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return "/".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
