"""The GPU-time that queues and users have used lately, for trees that share by it (`FairShare.OVER_TIME`).

What is compared is the time used so far, faded, and that which placed jobs are expected to use yet: so an admission counts at
once. By the time used so far alone, the queue with one GPU-second less would get everything that is free at this moment.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import groupby
from typing import Protocol, TypeVar

from quotas.core.accounts.ledger import Ledger
from quotas.core.trees.tree import FairShare

Account = tuple[str, str]
"""(leaf, user)."""


class Queued(Protocol):
    """What is needed of a `quotas.core.queues.order.Unit`."""

    @property
    def id(self) -> str: ...
    @property
    def user(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def place(self) -> tuple[int, float, str, str]: ...


Q = TypeVar("Q", bound=Queued)


class QueueUse:
    """Changes as a pass admits. ``expected``: the GPU-seconds that a job is expected to use, by its id."""

    def __init__(self, ledger: Ledger, used: Mapping[Account, float], expected: Callable[[str], float]) -> None:
        nodes, by_path = ledger.tree.nodes, ledger.tree.by_path
        self.expected = expected
        self.counts = [
            _is_over_time(by_path[node.parent or node.path].attributes.fair_share) for node in nodes
        ]  # [node]
        """Whether the node is compared with its siblings by use."""
        self.by_row = [0.0] * len(nodes)
        self._rows = {leaf.path: ledger.path_rows[leaf.path].tolist() for leaf in ledger.tree.leaves}
        self._by_user = {leaf.path for leaf in ledger.tree.leaves if _is_over_time(leaf.attributes.fair_share)}
        self._of_user: dict[Account, float] = defaultdict(float)
        for (leaf, user), amount in used.items():
            self.add(leaf, user, amount)

    def add(self, leaf: str, user: str, amount: float) -> None:
        """Counts GPU-seconds of a user of a leaf; none of a leaf that is not in the tree."""
        self._of_user[leaf, user] += amount
        for row in self._rows.get(leaf, ()):
            self.by_row[row] += amount

    def in_turn(self, leaf: str, units: Sequence[Q]) -> list[Q]:
        """The jobs of a leaf, of one priority in turns of its users: next is the user with the least use."""
        if leaf not in self._by_user or len({unit.user for unit in units}) < 2:
            return list(units)
        return [unit for _, alike in groupby(units, lambda unit: unit.priority) for unit in self._turns(leaf, alike)]

    def _turns(self, leaf: str, units: Iterable[Q]) -> Iterable[Q]:
        lines: dict[str, deque[Q]] = defaultdict(deque)
        for unit in units:
            lines[unit.user].append(unit)
        heap = [self._turn(self._of_user[leaf, user], line) for user, line in lines.items()]
        heapify(heap)
        while heap:
            use, _, user = heappop(heap)
            unit = lines[user].popleft()
            yield unit
            if lines[user]:
                heappush(heap, self._turn(use, lines[user]))

    def _turn(self, use: float, line: deque[Q]) -> tuple[float, Hashable, str]:
        """With its next job: a queue that asks for much waits until the others have had as much."""
        return use + self.expected(line[0].id), line[0].place, line[0].user


def _is_over_time(share: FairShare) -> bool:
    return share is FairShare.OVER_TIME
