"""A pass over all queues: gives out one job after the other in order, and is told what became of each.

It offers and does not decide: the caller asks the quota, looks for a place, charges the ledger, and reports `admitted`,
`refused` (by the quota) or `passed` (no place for it). So one pass admits as many jobs as fit, each seeing what the one before
took. `plan` is such a caller for the quota alone.
"""

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from quotas.core import admission
from quotas.core.admission import Refused
from quotas.core.ledger import Ask, Ledger
from quotas.core.order import Bid, Claim, Claims, Unit
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
    blocks: bool
    next: int = 0
    last: dict[object, int] = field(default_factory=dict)
    """Of each shape, the last one who has it."""
    modest: deque[Unit] = field(default_factory=deque)
    """The first of each shape that may stay within min."""

    @property
    def head(self) -> Unit | None:
        return self.units[self.next] if self.next < len(self.units) else None

    def add(self, unit: Unit) -> None:
        if unit.shape not in self.last:
            self.modest.append(unit)
        self.last[unit.shape] = len(self.units)
        self.units.append(unit)


_Offer = tuple[Claim, int, int, Bid]
"""The best job below a node: claim, row, a number that keeps equal claims apart, the job. Stale once there is a newer one."""


class Turns:
    """Offers every waiting job once, however often it is named. The ledger may only be charged meanwhile, on the path of who is
    on offer."""

    def __init__(self, ledger: Ledger, waiting: Iterable[Unit]) -> None:
        self.waits: list[tuple[Unit, Refused | Behind]] = []
        """Who was refused or stands behind a job that was; in full once `next` gives nobody."""
        self._ledger = ledger
        self._claims = Claims(ledger)
        self._heaps: dict[int, list[_Offer]] = defaultdict(list)
        self._latest: dict[int, _Offer | None] = {}
        self._serial = count()
        self._queues: dict[str, _Queue] = {}
        self._known: dict[object, Refused] = {}
        each_once = {unit.id: unit for unit in waiting}
        for unit in sorted(each_once.values(), key=lambda unit: unit.place):
            self._queue(unit.leaf).add(unit)
        self._learn_who_never_fits()
        for leaf in self._queues:
            self._renew(leaf)

    def next(self) -> Unit | None:
        """Who is next; the same until it is reported."""
        offer = self._latest.get(0)
        return offer[3].unit if offer else None

    def admitted(self, unit: Unit) -> None:
        """It runs, and the ledger has been charged."""
        self._queues[unit.leaf].next += 1
        self._renew(unit.leaf)

    def refused(self, unit: Unit, answer: Refused) -> None:
        """The quota says no: to all that ask the same of the same leaf too, since room only shrinks during a pass."""
        queue = self._queues[unit.leaf]
        queue.next += 1
        self.waits.append((unit, answer))
        if queue.blocks:
            self._block(queue, unit)
        self._known[unit.shape] = answer
        self._renew(unit.leaf)

    def passed(self, unit: Unit) -> None:
        """The quota would have it, but it goes nowhere; the caller knows why."""
        queue = self._queues[unit.leaf]
        queue.next += 1
        if queue.blocks:
            self._block(queue, unit)
        self._renew(unit.leaf)

    def _queue(self, leaf: str) -> _Queue:
        if leaf not in self._queues:
            policy = self._ledger.tree.by_path[leaf].attributes.queue_policy
            self._queues[leaf] = _Queue([], policy is QueuePolicy.BLOCK)
        return self._queues[leaf]

    def _block(self, queue: _Queue, blocker: Unit) -> None:
        behind = enumerate(queue.units[queue.next :], start=2)
        self.waits += [(unit, Behind(unit.leaf, position, blocker.name)) for position, unit in behind]
        queue.next = len(queue.units)

    def _renew(self, leaf: str) -> None:
        """Works out the offers anew from the leaf up to the root."""
        head = self._unknown(self._queues[leaf])
        best = None if head is None else self._bid(self._queues[leaf], head)
        for row in self._ledger.way[leaf].tolist():
            if row in self._heaps:
                best = self._best(row)
            offer = None
            if best is not None:
                offer = (self._claims.of(row, best), row, next(self._serial), best)
                if row:
                    heappush(self._heaps[self._ledger.parent[row]], offer)
            self._latest[row] = offer

    def _bid(self, queue: _Queue, head: Unit) -> Bid:
        """Whoever is first is offered first, but the queue's turn is decided by one behind it too that stays within min."""
        row, asked = int(self._ledger.way[head.leaf][0]), self._ledger.ask(head.charge.amounts)
        alone = queue.blocks or self._claims.within(row, asked)
        return Bid(head, asked, asked if alone else self._modest(queue, row) or asked)

    def _modest(self, queue: _Queue, row: int) -> Ask | None:
        """Nobody who would go beyond min now stays within it later in the pass, so each is looked at once."""
        while queue.modest:
            unit = queue.modest[0]
            asked = self._ledger.ask(unit.charge.amounts)
            waits = queue.last[unit.shape] >= queue.next and unit.shape not in self._known
            if waits and self._claims.within(row, asked):
                return asked
            queue.modest.popleft()
        return None

    def _unknown(self, queue: _Queue) -> Unit | None:
        """The first of a queue whose answer is not known yet."""
        while (head := queue.head) is not None and (answer := self._known.get(head.shape)):
            queue.next += 1
            self.waits.append((head, answer))
        return head

    def _learn_who_never_fits(self) -> None:
        """They would hide those behind them, who may be within min, from the other queues; unless they hold up their queue."""
        for unit in [each for queue in self._queues.values() if not queue.blocks for each in queue.modest]:
            charge = unit.charge
            answer = admission.ask(self._ledger, charge.leaf, charge.amounts, preemptible=charge.preemptible)
            if isinstance(answer, Refused) and answer.code is admission.Code.NEVER_FITS:
                self._known[unit.shape] = answer

    def _best(self, row: int) -> Bid | None:
        heap = self._heaps[row]
        while heap and self._latest[heap[0][1]] is not heap[0]:
            heappop(heap)
        return heap[0][3] if heap else None


@dataclass(slots=True)
class Plan:
    admitted: list[Unit]
    waits: list[tuple[Unit, Refused | Behind]]


def plan(ledger: Ledger, waiting: Iterable[Unit]) -> Plan:
    """What the quota alone would let run now; charges the ledger with it."""
    turns = Turns(ledger, waiting)
    made = Plan([], turns.waits)
    while (unit := turns.next()) is not None:
        answer = admission.ask(ledger, unit.leaf, unit.charge.amounts, preemptible=unit.charge.preemptible)
        if isinstance(answer, Refused):
            turns.refused(unit, answer)
        else:
            ledger.charge(unit.charge)
            made.admitted.append(unit)
            turns.admitted(unit)
    return made
