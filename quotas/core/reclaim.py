"""Reclaim: chooses which running jobs to stop so that a waiting job can run. Whole gangs, and no more than needed.

A job has two rights. First, a job whose side stays within its min may stop jobs of queues that borrow. Just below the lowest
common ancestor of preemptor and victim the preemptor's side must be within min once all is done, in every guaranteed resource
the preemptor asks for (a separate right for each resource would let three jobs preempt each other in turn for ever), and the
victim's side must be above min, on every level from its leaf up, in a resource that is short. Where borrowing of another
resource on the preemptor's own side is all that denies it this right, those borrowers are stopped first. Second, where the
leaf has PreemptLowerPriority, a job may stop strictly lower priorities of its own queue. A non-preemptible job is never a
victim, and no job is stopped for one that could not be placed then (``can_place``).

A gang may straddle its min: the part above was borrowed, and gangs are stopped whole. It cannot preempt in return: with it its
side is above min as before, and the preemptor's side is within.
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
from quotas.core.amounts import COUNTS, format_amount
from quotas.core.ledger import Charge, Ledger, Units
from quotas.core.order import Unit
from quotas.core.tree import PreemptPolicy

Columns = NDArray[np.bool_]  # [resource]
CanPlace = Callable[[frozenset[str]], bool]
"""Whether the preemptor would find a place if the jobs with these keys were gone. Monotonic: more gone never makes it False."""


@dataclass(frozen=True)
class Running:
    """A job the ledger is charged with. A job that is being evicted already is neither listed nor charged."""

    key: str
    charge: Charge
    priority: int
    started_at: datetime
    elastic: bool = False
    checkpointed: bool = False
    started: bool = True
    """False: placed by this very cycle and not written yet, so that nothing is lost when it does not start."""

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
    """The node above its min, just below the lowest common ancestor; for a lower priority the common queue."""
    resource: str
    over: int
    """By how much the node was above min when this victim was chosen; 0 for a lower priority."""

    @property
    def message(self) -> str:
        if self.cause is Cause.LOWER_PRIORITY:
            return f"has a lower priority in {self.path}, which preempts by priority"
        return f"{self.path} is {format_amount(self.resource, self.over)} above its min"


@dataclass(frozen=True, slots=True)
class Reclaim:
    preemptor: str
    victims: tuple[Victim, ...]
    """In the order they are chosen; empty when the preemptor fits as things stand."""
    freed: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Target:
    job: Running
    victim: Victim
    needs: tuple[tuple[int, int], ...]
    """(level, column) of the preemptor's path that must be within min at the end, or there was no right to this job."""


def plan(ledger: Ledger, preemptor: Unit, running: Iterable[Running], can_place: CanPlace) -> Reclaim | None:
    """The jobs to stop for the preemptor; None when none would help or it has no right to them. Leaves the ledger as it was."""
    answer = admission.check_admission(
        ledger, preemptor.leaf, preemptor.charge.amounts, preemptible=preemptor.charge.preemptible
    )
    if isinstance(answer, Refused) and (answer.bound is Bound.MIN or answer.code is admission.Code.NEVER_FITS):
        return None
    search = _Search(ledger, preemptor, running, can_place)
    if not search.has_a_right():
        return None
    with ledger.released([]):
        taken = search.run()
    if taken is None:
        return None
    freed = {name: sum(target.job.charge.amounts.get(name, 0) for target in taken) for name in ledger.resources}
    return Reclaim(preemptor.id, tuple(target.victim for target in taken), {k: v for k, v in freed.items() if v})


def may_lose(ledger: Ledger, leaf: str) -> bool:
    """Whether jobs of this leaf may be preempted at all: it borrows, or preempts by priority within its queue."""
    row = ledger.row[leaf]
    by_priority = ledger.tree.by_path[leaf].attributes.preempt_policy is PreemptPolicy.LOWER_PRIORITY
    return by_priority or bool((ledger.held.claims[row] > ledger.min[row]).any())


class _Search:
    """One search for a preemptor. Releases the charges of chosen jobs from the ledger as it goes."""

    def __init__(self, ledger: Ledger, preemptor: Unit, running: Iterable[Running], can_place: CanPlace) -> None:
        self.ledger = ledger
        self.preemptor = preemptor
        self.path_rows = ledger.path_rows[preemptor.leaf]
        self.asked = ledger.vector(preemptor.charge.amounts)
        self.level_of = {row: level for level, row in enumerate(self.path_rows.tolist())}
        self.consumed = np.array([name not in COUNTS for name in ledger.resources]) & (self.asked > 0)
        self.claims = ledger.promised & (self.asked > 0)
        self.own = ledger.held.used[self.path_rows[0]].copy()
        policy = ledger.tree.by_path[preemptor.leaf].attributes.preempt_policy
        self.by_priority = policy is PreemptPolicy.LOWER_PRIORITY
        self.can_place = can_place
        self.running = running
        self.candidates: list[Running] = []
        self.stops_own_borrowers = False
        """Whether borrowers on the preemptor's own side are stopped too for resources that are not short: the last resort."""

    def run(self) -> list[_Target] | None:
        self.candidates = self._candidates()
        taken = self._until_quota_allows()
        if taken is None:
            return None
        if not self._can_place(taken):
            taken = self._until_placed(taken)
        return taken and self._without_the_unnecessary(taken)

    def has_a_right(self) -> bool:
        """Whether a search can succeed: each resource that is short is within min on some level below where it is short."""
        if self.by_priority:
            return True
        short = self._find_short()
        if short[0].any():
            return False
        promised = np.logical_or.accumulate(self._within_min(), axis=0)
        return bool((promised[:-1] | ~short[1:]).all())

    def _candidates(self) -> list[Running]:
        """First gangs that have not started; then borrowers in other queues, before lower priorities in the preemptor's own."""
        own_leaf, borrows = self.preemptor.leaf, cache(self._is_borrowing)
        candidates = [
            job
            for job in self.running
            if job.charge.preemptible and (borrows(job.leaf) if job.leaf != own_leaf else self._has_lower_priority(job))
        ]
        return sorted(candidates, key=lambda job: (job.started, job.leaf == own_leaf, job.cheap_first))

    def _is_borrowing(self, leaf: str) -> bool:
        """Whether another leaf is above min up to the common ancestor; if it is not now, it will not be later in the search."""
        below_lca = [row for row in self.ledger.path_rows[leaf].tolist() if row not in self.level_of]
        return bool(self._above_min(np.array(below_lca)).any())

    def _has_lower_priority(self, job: Running) -> bool:
        return self.by_priority and job.priority < self.preemptor.priority

    def _find_short(self) -> Columns:  # [level, resource]
        return admission.find_short(self.ledger, self.asked, self.path_rows)

    def _exceeds_own_min(self, taken: Iterable[_Target]) -> Columns:
        """Resources of which the queue, preempting by priority, would have more than its min and more than before.

        Priority decides which jobs use what a queue has; it is no right to more of what is guaranteed to others.
        """
        own = [target.job.charge.amounts for target in taken if target.victim.cause is Cause.LOWER_PRIORITY]
        after = self.own + self.asked - sum(self.ledger.vector(amounts) for amounts in own)
        most = np.maximum(self.own, self.ledger.min[self.path_rows[0]])
        return np.asarray((after > most) & self.ledger.promised) if own else np.zeros_like(self.ledger.promised)

    def _missing(self, taken: Iterable[_Target]) -> Columns:  # [level, resource]
        missing = self._find_short()
        missing[0] |= self._exceeds_own_min(taken)
        return missing | self._own_side_borrowing() if self.stops_own_borrowers else missing

    def _own_side_borrowing(self) -> Columns:  # [level, resource]
        """Levels below a short one, and resources, where borrowing on the preemptor's own side denies it the right."""
        higher = np.logical_or.accumulate(np.asarray(self._find_short().any(axis=1))[::-1])[::-1]
        beyond = self.claims & ~self._within_min() & np.append(higher[1:], False)[:, None]
        beyond[0] = False
        return np.asarray(beyond)

    def _within_min(self) -> Columns:  # [level, resource]
        return admission.within_min(self.ledger, self.asked, self.path_rows)

    def _can_place(self, taken: Sequence[_Target]) -> bool:
        return not self._exceeds_own_min(taken).any() and self.can_place(frozenset(target.job.key for target in taken))

    def _until_quota_allows(self) -> list[_Target] | None:
        """Choose candidates in order until nothing is short any more; None when that cannot be reached."""
        taken: list[_Target] = []
        short, within = self._missing(taken), self._within_min()
        left = iter(self.candidates)
        while short.any():
            job = next(left, None)
            if job is None and self.stops_own_borrowers:
                return None
            if job is None:
                self.stops_own_borrowers = True
                short, left = self._missing(taken), self._remaining(taken)
            elif (target := self._as_target(job, short, within)) is not None:
                taken.append(self._choose(target))
                before, short, within = within, self._missing(taken), self._within_min()
                if (before != within).any():
                    left = self._remaining(taken)
        return taken

    def _until_placed(self, taken: list[_Target]) -> list[_Target] | None:
        """The quota has room, but no cluster: choose all candidates it has a right to, then the shortest prefix that
        suffices.
        """
        fewest, within = len(taken) + 1, self._within_min()
        taken, left = list(taken), self._remaining(taken)
        while (job := next(left, None)) is not None:
            wanted = self.consumed if job.leaf == self.preemptor.leaf else self.consumed & self.ledger.promised
            target = self._as_target(job, np.broadcast_to(wanted, within.shape), within)
            if target is None:
                continue
            taken.append(self._choose(target))
            before, within = within, self._within_min()
            if (before != within).any():
                left = self._remaining(taken)
        return self._shortest(taken, fewest)

    def _remaining(self, taken: Sequence[_Target]) -> Iterator[Running]:
        """The candidates from the start: the right to one may exist only now that the preemptor's side is within min."""
        gone = {target.job.key for target in taken}
        return iter([job for job in self.candidates if job.key not in gone])

    def _shortest(self, taken: list[_Target], fewest: int) -> list[_Target] | None:
        """The shortest prefix of at least ``fewest`` with which the preemptor can be placed, by bisection; charges the rest
        again.
        """
        if len(taken) < fewest or not self._can_place(taken):
            return None
        low, high = fewest, len(taken)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._can_place(taken[:middle]) else (middle + 1, high)
        for target in taken[low:]:
            self.ledger.charge(target.job.charge)
        return taken[:low]

    def _without_the_unnecessary(self, taken: list[_Target]) -> list[_Target]:
        """Drop targets that the others suffice without, the most valuable first."""
        for target in reversed(taken):
            rest = [other for other in taken if other is not target]
            self.ledger.charge(target.job.charge)
            within = self._within_min()
            kept = all(within[need] for other in rest for need in other.needs)
            if kept and not self._find_short().any() and self._can_place(rest):
                taken = rest
            else:
                self.ledger.release(target.job.charge)
        return taken

    def _choose(self, target: _Target) -> _Target:
        self.ledger.release(target.job.charge)
        return target

    def _as_target(self, job: Running, short: Columns, within: Columns) -> _Target | None:
        """The job as a target, if the preemptor has a right to it and it frees a resource that is short; else None."""
        path_rows = self.ledger.path_rows[job.leaf]
        lca = next(i for i, row in enumerate(path_rows.tolist()) if row in self.level_of)
        level = self.level_of[int(path_rows[lca])]
        helps = short[level:].any(axis=0) & (self.ledger.vector(job.charge.amounts) > 0)
        if not helps.any():
            return None
        if job.leaf == self.preemptor.leaf:
            return self._target(job, Cause.LOWER_PRIORITY, int(path_rows[0]), int(helps.argmax()), ())
        above = helps & self._above_min(path_rows[:lca])
        right = helps | self.claims
        if not above.any() or (right & ~within[level - 1]).any():
            return None
        needs = tuple((level - 1, int(column)) for column in right.nonzero()[0])
        return self._target(job, Cause.ABOVE_MIN, int(path_rows[lca - 1]), int(above.argmax()), needs)

    def _above_min(self, rows: Units) -> Columns:
        """The resources of which each of these nodes claims more than its min, with what its idle children keep back."""
        return np.asarray((self.ledger.held.claims[rows] > self.ledger.min[rows]).all(axis=0))

    def _target(self, job: Running, cause: Cause, row: int, column: int, needs: tuple[tuple[int, int], ...]) -> _Target:
        over = int(self.ledger.held.claims[row, column] - self.ledger.min[row, column])
        path, resource = self.ledger.tree.nodes[row].path, self.ledger.resources[column]
        victim = Victim(job.key, job.leaf, cause, path, resource, over if cause is Cause.ABOVE_MIN else 0)
        return _Target(job, victim, needs)
