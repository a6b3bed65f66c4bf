"""One pass over all queues: offers one job after the other in fair-share order, and takes a report of each outcome.

It offers and does not decide: the caller asks the quota, looks for a place, charges the ledger, and reports `admitted`,
`refused` (by the quota) or `passed` (no place for it). So one pass admits as many jobs as fit, each seeing what the one before
took. `plan` is such a caller for the quota alone.

A queue's jobs come in its own order, with one exception: where the next job of two sides would borrow, and both hide a job
within min, the one of the other side comes first: it would otherwise reclaim at once what the borrower had just got.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

from quotas.core.accounts.ledger import Ask, Ledger
from quotas.core.accounts.queue_use import QueueUse
from quotas.core.queues import admission, choices
from quotas.core.queues.admission import Refused
from quotas.core.queues.job_names import shown_to
from quotas.core.queues.order import HIDES, FairShareKey, FairShareKeys, Head, Unit
from quotas.core.trees.tree import QueuePolicy


@dataclass(frozen=True, slots=True)
class Behind:
    """The answer for a job in a blocked queue, behind the job that blocks it."""

    path: str
    position: int
    """From 1, in its queue."""
    blocker: str
    reader: str
    """The job itself: what it may not see is not named in its message."""
    code: str = "BehindInQueue"

    @property
    def message(self) -> str:
        return f"is number {self.position} in queue {self.path}, which waits for {shown_to(self.blocker, self.reader)}"


@dataclass(slots=True)
class _Queue:
    units: list[Unit]
    blocks: bool
    next: int = 0

    @property
    def head(self) -> Unit | None:
        return self.units[self.next] if self.next < len(self.units) else None


_Offer = tuple[FairShareKey, int, int, Head]
"""The best job below a node: (key, row, serial number, job). Stale once the node has a newer offer."""


class FairShareIterator:
    """Offers every waiting job once, however often it is named. Until it is used up the ledger may only be charged, and only on
    the path of the job on offer: keys of other paths are cached."""

    def __init__(self, ledger: Ledger, waiting: Iterable[Unit], use: QueueUse | None = None) -> None:
        self.waits: list[tuple[Unit, Refused | Behind]] = []
        """Jobs that were refused or are behind one that was; complete once `next` returns None."""
        self._ledger = ledger
        self._use = use
        self._keys = FairShareKeys(ledger, use)
        self._heaps: dict[int, list[_Offer]] = defaultdict(list)
        self._latest: dict[int, _Offer | None] = {}
        self._serial = count()
        self._queues: dict[str, _Queue] = {}
        self._known: dict[object, Refused] = {}
        self._maybe_within: dict[int, deque[Unit]] = defaultdict(deque)
        """For each node the jobs below it that may stay within its min, in order; without queues of policy Block."""
        self._shapes: dict[object, Unit] = {}
        """One unit of each shape, of queues that do not block."""
        self._offered: set[str] = set()
        self._asks: dict[str, Ask] = {}
        self._hiding: Counter[int] = Counter()
        """For each node, how many of its children hide a job within min behind their best one."""
        each_once = {unit.id: unit for unit in waiting}
        for unit in sorted(each_once.values(), key=lambda unit: unit.place):
            self._add(unit)
        if use is not None:
            for leaf, queue in self._queues.items():
                if not queue.blocks:
                    queue.units = use.in_turn(leaf, queue.units)
        self._refuse_never_fitting()
        for leaf in self._queues:
            self._renew(leaf)

    def next(self) -> Unit | None:
        """The next job to consider, or None; the same one until its outcome is reported."""
        offer = self._latest.get(0)
        return self._before(offer[3].unit) if offer else None

    def admitted(self, unit: Unit) -> None:
        """Report: the job is placed, and the ledger has been charged."""
        self._report(self._queues[unit.leaf], unit)
        if self._use is not None:
            self._use.add(unit.leaf, unit.user, self._use.expected(unit.id))
        self._renew(unit.leaf)

    def refused(self, unit: Unit, answer: Refused) -> None:
        """Report: the quota refuses the job, and all that ask the same of the same leaf: room only shrinks during a pass."""
        queue = self._queues[unit.leaf]
        self._report(queue, unit)
        self.waits.append((unit, answer))
        if queue.blocks:
            self._block(queue, unit)
        self._known[unit.shape] = answer
        self._renew(unit.leaf)

    def passed(self, unit: Unit, alike: Iterable[str] = ()) -> None:
        """Report: the quota admits the job, but no cluster holds it, nor those with the ids in ``alike``."""
        queue = self._queues[unit.leaf]
        self._report(queue, unit)
        self._offered.update(alike)
        if queue.blocks:
            self._block(queue, unit)
        self._renew(unit.leaf)

    def _add(self, unit: Unit) -> None:
        queue = self._queue(unit.leaf)
        queue.units.append(unit)
        if not queue.blocks:
            self._shapes.setdefault(unit.shape, unit)
            for row in self._ledger.path_rows[unit.leaf].tolist()[:-1]:
                self._maybe_within[row].append(unit)

    def _report(self, queue: _Queue, unit: Unit) -> None:
        self._offered.add(unit.id)
        if unit is queue.head:
            queue.next += 1

    def _before(self, best: Unit) -> Unit:
        """The job to offer instead of the best one: one within min of another side, where both sides hide such a job."""
        for row in self._ledger.path_rows[best.leaf].tolist()[:-1]:
            offer, parent = self._latest[row], self._ledger.parent[row]
            if offer is not None and offer[0][0] == HIDES and self._hiding[parent] > 1:
                return self._first_within(self._second(parent)) or best
        return best

    def _second(self, row: int) -> int:
        """The second-best child of a node that has at least two with an offer."""
        heap = self._heaps[row]
        self._best(row)
        first = heappop(heap)
        self._best(row)
        second = heap[0][1]
        heappush(heap, first)
        return second

    def _queue(self, leaf: str) -> _Queue:
        if leaf not in self._queues:
            policy = self._ledger.tree.by_path[leaf].attributes.queue_policy
            self._queues[leaf] = _Queue([], policy is QueuePolicy.BLOCK)
        return self._queues[leaf]

    def _block(self, queue: _Queue, blocker: Unit) -> None:
        behind = enumerate(queue.units[queue.next :], start=2)
        self.waits += [(unit, Behind(unit.leaf, position, blocker.name, unit.name)) for position, unit in behind]
        queue.next = len(queue.units)

    def _renew(self, leaf: str) -> None:
        """Compute the offers of all nodes on the path from the leaf to the root again."""
        head = self._unknown(self._queues[leaf])
        best = None if head is None else Head(head, self._ask(head))
        for row in self._ledger.rows[self._ledger.row[leaf]]:
            if row in self._heaps:
                best = self._best(row)
            offer, before, parent = None, self._latest.get(row), self._ledger.parent[row]
            if best is not None:
                claim = self._keys.compute_key(row, best, self._first_within)
                offer = (claim, row, next(self._serial), best)
                if row:
                    heappush(self._heaps[parent], offer)
            if (hides := _is_hiding(offer)) is not _is_hiding(before):
                self._hiding[parent] += 1 if hides else -1
            self._latest[row] = offer

    def _ask(self, unit: Unit) -> Ask:
        """What the unit asks; computed once for each unit of the pass, which is asked for it again and again."""
        request = self._asks.get(unit.id)
        if request is None:
            request = self._asks[unit.id] = self._ledger.ask(unit.charge.amounts)
        return request

    def _first_within(self, row: int) -> Unit | None:
        """The first job below the node that stays within its min. One that exceeds it now does so for the rest of the pass,
        as room only shrinks, so each is dropped once it was checked.
        """
        candidates = self._maybe_within[row]
        while candidates:
            unit = candidates[0]
            waits = unit.id not in self._offered and unit.shape not in self._known
            if waits and self._keys.stays_within_min(row, self._ask(unit)):
                return unit
            candidates.popleft()
        return None

    def _unknown(self, queue: _Queue) -> Unit | None:
        """The first job of a queue whose answer is not known yet; the ones before it are reported as refused."""
        while (head := queue.head) is not None:
            if head.id in self._offered:
                queue.next += 1
            elif answer := self._known.get(head.shape):
                self._report(queue, head)
                self.waits.append((head, answer))
            else:
                return head
        return None

    def _refuse_never_fitting(self) -> None:
        """Skip jobs that can never fit: they would hide later ones that are within min. Not in queues that block."""
        for shape, unit in self._shapes.items():
            answer = choices.find_never_fitting(self._ledger, unit)
            if answer is not None:
                self._known[shape] = answer

    def _best(self, row: int) -> Head | None:
        heap = self._heaps[row]
        while heap and self._latest[heap[0][1]] is not heap[0]:
            heappop(heap)
        return heap[0][3] if heap else None


def _is_hiding(offer: _Offer | None) -> bool:
    return offer is not None and offer[0][0] == HIDES


@dataclass(slots=True)
class Plan:
    admitted: list[Unit]
    waits: list[tuple[Unit, Refused | Behind]]


def plan_admission(ledger: Ledger, waiting: Iterable[Unit]) -> Plan:
    """The jobs that the quota alone would admit now; charges the ledger with them."""
    iterator = FairShareIterator(ledger, waiting)
    result = Plan([], iterator.waits)
    while (unit := iterator.next()) is not None:
        answer = admission.check_admission(ledger, unit.leaf, unit.charge.amounts, preemptible=unit.charge.preemptible)
        if isinstance(answer, Refused):
            iterator.refused(unit, answer)
        else:
            ledger.charge(unit.charge)
            result.admitted.append(unit)
            iterator.admitted(unit)
    return result
