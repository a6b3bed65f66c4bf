"""Whom to stop so that a waiting job can run: borrowed capacity is taken back, whole gangs, and no more than needed.

Two powers. A job whose side stays within its min takes from queues above theirs: where the ways of claimant and victim part,
the claimant's side must be within min once all is done, in whatever the claimant asks for that anybody is promised (one right
for each resource would let three chase each other round for ever), and the victim's side above min, from its leaf up, in
something that is short. Where what its side has borrowed of something else is all that denies it this right, the borrowers
there have to leave first. And where the leaf says PreemptLowerPriority, a job takes from strictly lower priorities of its own
queue. What may not be preempted is never taken, and nobody is stopped for a job that could not run then (``can_place``).

A gang may straddle its min: the part above was borrowed, and gangs are taken whole. It cannot come back for revenge: with it
its side is above min as before, and the claimant's side is within.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from quotas.core import admission
from quotas.core.admission import Bound, Refused
from quotas.core.amounts import COUNTS, told
from quotas.core.ledger import Charge, Ledger, Units
from quotas.core.order import Unit
from quotas.core.tree import PreemptPolicy

Columns = NDArray[np.bool_]  # [resource]
CanPlace = Callable[[frozenset[str]], bool]
"""Would the claimant find a place if the jobs with these keys were gone? More gone never makes a yes a no."""


@dataclass(frozen=True)
class Running:
    """A job the ledger is charged with. One that is on its way out already belongs in neither."""

    key: str
    charge: Charge
    priority: int
    started_at: datetime
    elastic: bool = False
    checkpointed: bool = False
    started: bool = True
    """False: this very cycle placed it and nothing is written yet, so that nothing at all is lost when it does not start."""

    @property
    def leaf(self) -> str:
        return self.charge.leaf

    @cached_property
    def cheap_first(self) -> tuple[int, bool, bool, float, str]:
        """Lowest priority, then what loses least work: elastic, checkpointed, most recently started."""
        return self.priority, not self.elastic, not self.checkpointed, -self.started_at.timestamp(), self.key


class Cause(StrEnum):
    ABOVE_MIN = "AboveMin"
    LOWER_PRIORITY = "LowerPriority"


@dataclass(frozen=True, slots=True)
class Victim:
    key: str
    leaf: str
    cause: Cause
    path: str
    """The node that is above its min, just below where claimant and victim part; the common queue for a lower priority."""
    resource: str
    over: int
    """How much above min the node was when the turn came to this job; 0 for a lower priority."""

    @property
    def message(self) -> str:
        if self.cause is Cause.LOWER_PRIORITY:
            return f"has a lower priority in {self.path}, which preempts by priority"
        return f"{self.path} is {told(self.resource, self.over)} above its min"


@dataclass(frozen=True, slots=True)
class Reclaim:
    claimant: str
    victims: tuple[Victim, ...]
    """In the order they are chosen; empty when the claimant fits as things stand."""
    freed: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Taken:
    job: Running
    victim: Victim
    needs: tuple[tuple[int, int], ...]
    """(step, column) of the claimant's way that must be within min at the end, or this was not the claimant's to take."""


def plan(ledger: Ledger, claimant: Unit, running: Iterable[Running], can_place: CanPlace) -> Reclaim | None:
    """Whom to stop for the claimant; None when that would not help or is not its right. Leaves the ledger as it was."""
    answer = admission.ask(ledger, claimant.leaf, claimant.charge.amounts, preemptible=claimant.charge.preemptible)
    if isinstance(answer, Refused) and (answer.bound is Bound.MIN or answer.code is admission.Code.NEVER_FITS):
        return None
    search = _Search(ledger, claimant, running, can_place)
    if not search.has_a_right():
        return None
    with ledger.released([]):
        taken = search.run()
    if taken is None:
        return None
    freed = {name: sum(each.job.charge.amounts.get(name, 0) for each in taken) for name in ledger.resources}
    return Reclaim(claimant.id, tuple(each.victim for each in taken), {k: v for k, v in freed.items() if v})


def may_lose(ledger: Ledger, leaf: str) -> bool:
    """Whether jobs of this leaf may be somebody's to take: it borrows, or preempts in its own ranks."""
    row = ledger.row[leaf]
    by_priority = ledger.tree.by_path[leaf].attributes.preempt_policy is PreemptPolicy.LOWER_PRIORITY
    return by_priority or bool((ledger.held.claims[row] > ledger.min[row]).any())


class _Search:
    """One search; releases from the ledger as it goes."""

    def __init__(self, ledger: Ledger, claimant: Unit, running: Iterable[Running], can_place: CanPlace) -> None:
        self.ledger = ledger
        self.claimant = claimant
        self.way = ledger.way[claimant.leaf]
        self.asked = ledger.vector(claimant.charge.amounts)
        self.step_of = {row: step for step, row in enumerate(self.way.tolist())}
        self.consumed = np.array([name not in COUNTS for name in ledger.resources]) & (self.asked > 0)
        self.claims = ledger.promised & (self.asked > 0)
        self.own = ledger.held.used[self.way[0]].copy()
        policy = ledger.tree.by_path[claimant.leaf].attributes.preempt_policy
        self.by_priority = policy is PreemptPolicy.LOWER_PRIORITY
        self.places = can_place
        self.running = running
        self.candidates: list[Running] = []
        self.clears_the_way = False
        """Whether it takes from its own side as well what is not short: only when there is no other way."""

    def run(self) -> list[_Taken] | None:
        self.candidates = self._candidates()
        taken = self._until_quota_allows()
        if taken is None:
            return None
        if not self._placed(taken):
            taken = self._until_placed(taken)
        return taken and self._without_the_unnecessary(taken)

    def has_a_right(self) -> bool:
        """Whether a search can find anything: each thing that is short was promised somewhere below where it is."""
        if self.by_priority:
            return True
        short = self._short()
        if short[0].any():
            return False
        promised = np.logical_or.accumulate(self._within(), axis=0)
        return bool((promised[:-1] | ~short[1:]).all())

    def _candidates(self) -> list[Running]:
        """First gangs that have not started; then borrowers in other queues, before lower priorities in the claimant's own."""
        mine, lends = self.claimant.leaf, cache(self._lends)
        found = [
            job
            for job in self.running
            if job.charge.preemptible and (lends(job.leaf) if job.leaf != mine else self._outranked(job))
        ]
        return sorted(found, key=lambda job: (job.started, job.leaf == mine, job.cheap_first))

    def _lends(self, leaf: str) -> bool:
        """Whether jobs of another leaf may be the claimant's to take: one that is not above min now will not be so later."""
        apart = [row for row in self.ledger.way[leaf].tolist() if row not in self.step_of]
        return bool(self._above(np.array(apart)).any())

    def _outranked(self, job: Running) -> bool:
        return self.by_priority and job.priority < self.claimant.priority

    def _short(self) -> Columns:  # [step, resource]
        return admission.short(self.ledger, self.asked, self.way)

    def _grows(self, taken: Iterable[_Taken]) -> Columns:
        """Where the queue would have more than its min and than before, if it preempts in its own ranks.

        Priority decides who in a queue uses what it has; it is no right to more of what was promised to others.
        """
        mine = [each.job.charge.amounts for each in taken if each.victim.cause is Cause.LOWER_PRIORITY]
        after = self.own + self.asked - sum(self.ledger.vector(amounts) for amounts in mine)
        most = np.maximum(self.own, self.ledger.min[self.way[0]])
        return np.asarray((after > most) & self.ledger.promised) if mine else np.zeros_like(self.ledger.promised)

    def _missing(self, taken: Iterable[_Taken]) -> Columns:  # [step, resource]
        missing = self._short()
        missing[0] |= self._grows(taken)
        return missing | self._in_the_way() if self.clears_the_way else missing

    def _in_the_way(self) -> Columns:  # [step, resource]
        """Below where something is short: of what others of its own side have borrowed, and the claimant so has no right."""
        higher = np.logical_or.accumulate(np.asarray(self._short().any(axis=1))[::-1])[::-1]
        beyond = self.claims & ~self._within() & np.append(higher[1:], False)[:, None]
        beyond[0] = False
        return np.asarray(beyond)

    def _within(self) -> Columns:  # [step, resource]
        return admission.within_min(self.ledger, self.asked, self.way)

    def _placed(self, taken: Sequence[_Taken]) -> bool:
        return not self._grows(taken).any() and self.places(frozenset(each.job.key for each in taken))

    def _until_quota_allows(self) -> list[_Taken] | None:
        taken: list[_Taken] = []
        short, within = self._missing(taken), self._within()
        left = iter(self.candidates)
        while short.any():
            job = next(left, None)
            if job is None and self.clears_the_way:
                return None
            if job is None:
                self.clears_the_way = True
                short, left = self._missing(taken), self._left(taken)
            elif (found := self._look(job, short, within)) is not None:
                taken.append(self._take(found))
                before, short, within = within, self._missing(taken), self._within()
                if (before != within).any():
                    left = self._left(taken)
        return taken

    def _until_placed(self, taken: list[_Taken]) -> list[_Taken] | None:
        """The quota allows it, but others hold the place: the shortest way through those it may take from."""
        fewest, within = len(taken) + 1, self._within()
        taken, left = list(taken), self._left(taken)
        while (job := next(left, None)) is not None:
            wanted = self.consumed if job.leaf == self.claimant.leaf else self.consumed & self.ledger.promised
            found = self._look(job, np.broadcast_to(wanted, within.shape), within)
            if found is None:
                continue
            taken.append(self._take(found))
            before, within = within, self._within()
            if (before != within).any():
                left = self._left(taken)
        return self._shortest(taken, fewest)

    def _left(self, taken: Sequence[_Taken]) -> Iterator[Running]:
        """From the start: what was not the claimant's to take may be so now that its side is within min."""
        gone = {each.job.key for each in taken}
        return iter([job for job in self.candidates if job.key not in gone])

    def _shortest(self, taken: list[_Taken], fewest: int) -> list[_Taken] | None:
        if len(taken) < fewest or not self._placed(taken):
            return None
        low, high = fewest, len(taken)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._placed(taken[:middle]) else (middle + 1, high)
        for each in taken[low:]:
            self.ledger.charge(each.job.charge)
        return taken[:low]

    def _without_the_unnecessary(self, taken: list[_Taken]) -> list[_Taken]:
        """Puts back one by one what the rest does without, the most valuable first."""
        for each in reversed(taken):
            rest = [other for other in taken if other is not each]
            self.ledger.charge(each.job.charge)
            within = self._within()
            kept = all(within[need] for other in rest for need in other.needs)
            if kept and not self._short().any() and self._placed(rest):
                taken = rest
            else:
                self.ledger.release(each.job.charge)
        return taken

    def _take(self, found: _Taken) -> _Taken:
        self.ledger.release(found.job.charge)
        return found

    def _look(self, job: Running, short: Columns, within: Columns) -> _Taken | None:
        """Whether this job is the claimant's to take, for a resource that is short on its way."""
        way = self.ledger.way[job.leaf]
        apart = next(i for i, row in enumerate(way.tolist()) if row in self.step_of)
        step = self.step_of[int(way[apart])]
        helps = short[step:].any(axis=0) & (self.ledger.vector(job.charge.amounts) > 0)
        if not helps.any():
            return None
        if job.leaf == self.claimant.leaf:
            return self._fated(job, Cause.LOWER_PRIORITY, int(way[0]), int(helps.argmax()), ())
        above = helps & self._above(way[:apart])
        right = helps | self.claims
        if not above.any() or (right & ~within[step - 1]).any():
            return None
        needs = tuple((step - 1, int(column)) for column in right.nonzero()[0])
        return self._fated(job, Cause.ABOVE_MIN, int(way[apart - 1]), int(above.argmax()), needs)

    def _above(self, rows: Units) -> Columns:
        """Of which resources every node of these has more than its min, with what its idle children keep back."""
        return np.asarray((self.ledger.held.claims[rows] > self.ledger.min[rows]).all(axis=0))

    def _fated(self, job: Running, cause: Cause, row: int, column: int, needs: tuple[tuple[int, int], ...]) -> _Taken:
        over = int(self.ledger.held.claims[row, column] - self.ledger.min[row, column])
        path, resource = self.ledger.tree.nodes[row].path, self.ledger.resources[column]
        victim = Victim(job.key, job.leaf, cause, path, resource, over if cause is Cause.ABOVE_MIN else 0)
        return _Taken(job, victim, needs)
