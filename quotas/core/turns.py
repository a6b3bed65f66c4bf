"""A pass over all queues: gives out one job after the other in order, and is told what became of each.

It offers and does not decide: the caller asks the quota, looks for a place, charges the ledger, and reports `admitted` or
`refused`. So one pass admits as many jobs as fit, each seeing what the one before took. `plan` is such a caller for the quota
alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from quotas.core import admission
from quotas.core.admission import Admitted, Refused
from quotas.core.ledger import Ledger, Units
from quotas.core.order import Claim, Claims, Unit
from quotas.core.tree import QueuePolicy


@dataclass(frozen=True, slots=True)
class Behind:
    """Not looked at, because a job before it holds up its queue."""

    path: str
    position: int
    """From 1, in its queue."""
    blocker: str
    code: str = "BehindInQueue"

    @property
    def message(self) -> str:
        return f"is number {self.position} in queue {self.path}, which waits for {self.blocker}"


@dataclass(slots=True)
class _Queue:
    units: list[Unit]
    next: int = 0
    blocker: Unit | None = None

    @property
    def head(self) -> Unit | None:
        over = self.blocker is not None or self.next >= len(self.units)
        return None if over else self.units[self.next]


@dataclass(frozen=True, slots=True, order=True)
class _Offer:
    """The best job below a node. Stale as soon as the node has a newer one."""

    claim: Claim
    row: int
    unit: Unit = field(compare=False)
    asked: Units = field(compare=False)


class Turns:
    """Offers every waiting job at most once. The ledger may only be charged meanwhile, on the path of the job on offer."""

    def __init__(self, ledger: Ledger, waiting: Iterable[Unit]) -> None:
        self._ledger = ledger
        self._claims = Claims(ledger)
        self._heaps: dict[int, list[_Offer]] = defaultdict(list)
        self._latest: dict[int, _Offer | None] = {}
        self._queues: dict[str, _Queue] = {}
        for unit in sorted(waiting, key=lambda unit: unit.place):
            self._queues.setdefault(unit.leaf, _Queue([])).units.append(unit)
        for leaf in self._queues:
            self._renew(leaf)

    def next(self) -> Unit | None:
        """Who is next; the same until it is reported."""
        offer = self._latest.get(0)
        return offer.unit if offer else None

    def admitted(self, unit: Unit) -> None:
        """It runs, and the ledger has been charged."""
        self._queues[unit.leaf].next += 1
        self._renew(unit.leaf)

    def refused(self, unit: Unit) -> None:
        """It does not run now; under Block nobody behind it does."""
        queue = self._queues[unit.leaf]
        queue.next += 1
        if self._ledger.tree.by_path[unit.leaf].attributes.queue_policy is QueuePolicy.BLOCK:
            queue.blocker = unit
        self._renew(unit.leaf)

    def behind(self) -> Iterator[tuple[Unit, Behind]]:
        """Those whom a blocked queue kept from being looked at; the blocker counts among the waiting."""
        for path, queue in self._queues.items():
            if queue.blocker is not None:
                for position, unit in enumerate(queue.units[queue.next :], start=2):
                    yield unit, Behind(path, position, queue.blocker.name)

    def _renew(self, leaf: str) -> None:
        """Works out the offers anew from the leaf up to the root."""
        head = self._queues[leaf].head
        best = None if head is None else (head, self._ledger.vector(head.charge.amounts))
        for row in self._ledger.way[leaf].tolist():
            if row in self._heaps:
                top = self._top(row)
                best = None if top is None else (top.unit, top.asked)
            offer = None if best is None else _Offer(self._claims.of(row, best[1], best[0].place), row, *best)
            self._latest[row] = offer
            if offer is not None and row:
                parent = self._ledger.row[self._ledger.tree.nodes[row].parent]
                heappush(self._heaps[parent], offer)

    def _top(self, row: int) -> _Offer | None:
        heap = self._heaps[row]
        while heap and self._latest[heap[0].row] is not heap[0]:
            heappop(heap)
        return heap[0] if heap else None


@dataclass(slots=True)
class Plan:
    admitted: list[Unit] = field(default_factory=list)
    waits: list[tuple[Unit, Refused | Behind]] = field(default_factory=list)


def plan(ledger: Ledger, waiting: Iterable[Unit]) -> Plan:
    """What the quota alone would let run now; charges the ledger with it."""
    turns, made = Turns(ledger, waiting), Plan()
    known: dict[object, Refused] = {}
    while (unit := turns.next()) is not None:
        # Room only shrinks during a pass, so a no stays a no.
        answer = known.get(unit.shape) or _ask(ledger, unit)
        if isinstance(answer, Admitted):
            ledger.charge(unit.charge)
            made.admitted.append(unit)
            turns.admitted(unit)
        else:
            known[unit.shape] = answer
            made.waits.append((unit, answer))
            turns.refused(unit)
    made.waits += turns.behind()
    return made


def _ask(ledger: Ledger, unit: Unit) -> admission.Answer:
    return admission.ask(ledger, unit.leaf, unit.charge.amounts, preemptible=unit.charge.preemptible)
