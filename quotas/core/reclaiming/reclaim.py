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

Where the preemptor is to use GPUs of one flavor, no job goes for its GPUs that has GPUs of other flavors alone: what it would
free is of no use there. A shortage of a flavor is judged by the min that decides about it (`Ledger.deciding`).

Jobs that can run on with fewer pods (``Running.surplus``) give back pod by pod, before any job is stopped whole: each such pod
is a candidate of its own, and one that is stopped whole takes its other pods along. Only where that finds nothing are they
looked at as jobs that are stopped whole or not at all: what a job straddles its min by may be more than it can give back.

Of the jobs it has a right to, the lowest priorities go, and of one priority no gang of `OVERSIZE` times what is missing while
smaller ones would do; then the choice that loses the least work (`covering`), then the fewest gangs, then those of
the side that is furthest above its min. Jobs within the min-runtime of their queue are chosen only where all others do not
suffice; the caller evicts them when it ends. Each pool to choose from holds the one before, so the first that suffices is
found by bisection.
Where these leave no right to others that would do (a queue is no longer above its min, and what its next job frees is on the
right nodes), any that suffice and may go together are chosen, as far as possible by the same order (`conflicts`); in fleets too
large for that, by what each takes of what its queue may lose (`proposals`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quotas.core.accounts.ledger import Ledger, Units
from quotas.core.queues import admission
from quotas.core.queues.admission import Bound, Refused
from quotas.core.queues.order import Unit
from quotas.core.reclaiming import conflicts, covering, proposals
from quotas.core.reclaiming.candidates import Candidates, Running
from quotas.core.reclaiming.rights import Rights
from quotas.core.reclaiming.sides import find_sides
from quotas.core.reclaiming.targeting import OVERSIZE, CanPlace, Columns, Propose, as_reclaim, propose_none
from quotas.core.reclaiming.victims import Reclaim, Target
from quotas.core.trees.amounts import UNLIMITED
from quotas.core.trees.tree import PreemptPolicy

COVERS = 16
"""How often the cheapest are chosen again because there was no right to some; after that they are taken in order."""
Positions = NDArray[np.int64]
"""Of candidates."""


def plan_reclaim(ledger: Ledger, preemptor: Unit, running: Iterable[Running], can_place: CanPlace) -> Reclaim | None:
    """The jobs to stop for the preemptor; None when none would help or it has no right to them. Leaves the ledger as it was."""
    return search(ledger, preemptor, lambda: Candidates(ledger, running), can_place)


def search(
    ledger: Ledger,
    preemptor: Unit,
    candidates: Callable[[], Candidates],
    can_place: CanPlace,
    propose: Propose = propose_none,
) -> Reclaim | None:
    """As `plan_reclaim`, with candidates that serve several searches; they are loaded only when the preemptor has a right, and
    some job may have to yield to it.
    """
    answer = admission.check_admission(
        ledger, preemptor.leaf, preemptor.charge.amounts, preemptible=preemptor.charge.preemptible
    )
    if isinstance(answer, Refused) and (answer.bound is Bound.MIN or answer.code is admission.Code.NEVER_FITS):
        return None
    reclaim = _Search(ledger, preemptor, can_place, propose)
    if not reclaim.has_a_right():
        return None
    known = candidates() if reclaim.may_find_targets() else Candidates(ledger, ())
    taken = reclaim.run(known)
    if taken is None and known.parts:
        taken = reclaim.run(known.without_parts())
    if taken is None:
        return None
    return as_reclaim(ledger, preemptor, taken)


def may_lose(ledger: Ledger, leaf: str) -> bool:
    """Whether jobs of this leaf may be preempted at all: it borrows, or preempts by priority within its queue."""
    row = ledger.row[leaf]
    by_priority = ledger.tree.by_path[leaf].attributes.preempt_policy is PreemptPolicy.LOWER_PRIORITY
    return by_priority or bool((ledger.held.claims[row] > ledger.min[row]).any())


class _Search(Rights):
    def __init__(self, ledger: Ledger, preemptor: Unit, can_place: CanPlace, propose: Propose) -> None:
        super().__init__(ledger, preemptor, can_place)
        self.propose = propose
        self.pool: Positions = np.zeros(0, dtype=np.int64)
        """The candidates that are considered now, in the order of their going."""
        self.stops_own_borrowers = False
        """Whether borrowers on the preemptor's own side are stopped too for resources that are not short: the last resort."""

    def run(self, candidates: Candidates) -> list[Target] | None:
        """By the smallest pool of candidates that suffices."""
        self.look_at(candidates)
        order, ends = self._pools()
        low, high = 0, len(ends) - 1
        taken = self._within_pool(order[: ends[low]])
        if taken is not None or low == high:
            return taken
        last = self._within_pool(order[: ends[high]])
        low += 1
        while last is not None and low < high:
            middle = (low + high) // 2
            taken = self._within_pool(order[: ends[middle]])
            low, high, last = (middle + 1, high, last) if taken is None else (low, middle, taken)
        return last

    def _within_pool(self, pool: Positions) -> list[Target] | None:
        """From these candidates; those that could come straight back by right are left out."""
        while True:
            self.pool, self.stops_own_borrowers = pool, False
            taken, back = self._search_pool(self._in_order, self._comes_back)
            if taken is None:
                compatible = partial(self._compatible, frozenset(self.gone))
                taken, back = self._search_pool(compatible, self._comes_back_with_lower)
            if not back:
                return taken
            pool = pool[~np.isin(pool, back)]

    def _search_pool(
        self, choose: Callable[[], list[Target] | None], comes_back: Callable[[Target], bool]
    ) -> tuple[list[Target] | None, list[int]]:
        """Targets that suffice, without those that are not needed; and which of them could come straight back."""
        self.gone.clear()
        with self.ledger.released([]):
            taken = choose()
            taken = taken and self._without_the_unnecessary(taken)
            return taken, [each for target in taken or () if comes_back(target) for each in target.positions]

    def _in_order(self) -> list[Target] | None:
        taken = self._until_quota_allows()
        if taken is not None and not self._can_place(taken):
            taken = self._until_placed(taken)
        return taken

    def _comes_back(self, target: Target) -> bool:
        """Whether the job would take the place back, by a min of what the preemptor's side needs and does not state."""
        return self._could_return(target, self.ledger.vector({}))

    def _comes_back_with_lower(self, target: Target) -> bool:
        """As `_comes_back`, or could once it has stopped lower priorities of its own queue, as that may state."""
        known, position = self.candidates, target.positions[0]
        rules = self.ledger.tree.by_path[target.job.leaf].attributes
        if rules.preempt_policy is not PreemptPolicy.LOWER_PRIORITY:
            return self._comes_back(target)
        lower = known.stays & (known.leaf == known.leaf[position]) & (known.priority < known.priority[position])
        lower[sorted(self.gone)] = False
        return self._could_return(target, known.sizes[lower].sum(axis=0))

    def _could_return(self, target: Target, more: Units) -> bool:
        """``more``: what its side could have less than it has now."""
        ledger, rows = self.ledger, self.ledger.rows[int(self.candidates.leaf[target.positions[0]])]
        lca = next(i for i, row in enumerate(rows) if row in self.level_of)
        if not lca:
            return False
        side, beside = rows[lca - 1], self.path_rows[self.level_of[rows[lca]] - 1]
        size = self.candidates.sizes[list(target.positions)].sum(axis=0)
        stated = (ledger.min[side] > 0) & (size > 0)
        if not (stated & ledger.unstated[beside] & (self.asked > 0)).any():
            return False
        within = size <= ledger.min[side] - ledger.held.claims[side] + more
        return bool(within[ledger.promised & (size > 0)].all())

    def has_a_right(self) -> bool:
        """Whether a search can succeed: each resource that is short is within min on some level below where it is short."""
        if self.by_priority:
            return True
        short = self.find_short()
        if short[0].any():
            return False
        promised = np.logical_or.accumulate(self.within_min(), axis=0)
        return bool((promised[:-1] | ~short[1:]).all())

    def may_find_targets(self) -> bool:
        """Whether any job can be a target: those of other queues that borrow, and by priority those of its own queue."""
        others = self.ledger.leaf_rows[self.ledger.leaf_rows != self.path_rows[0]]
        return self.by_priority or bool((self.ledger.held.claims[others] > self.ledger.min[others]).any())

    def _pools(self) -> tuple[Positions, list[int]]:
        """Candidates in the order of their going, and how many of the first ones make up each pool that may suffice."""
        known, need = self.candidates, admission.find_missing(self.ledger, self.asked, self.path_rows).max(axis=0)
        counts = need if need.any() else np.where(self.consumed, self.asked, 0)
        columns = counts.nonzero()[0]
        helps = known.stays & ~self.foreign if not need[~self.ledger.gpus].any() else known.stays
        own, sides = known.leaf == self.path_rows[0], find_sides(self.ledger, self.path_rows)
        borrows = sides.borrows[known.leaf]
        lower = known.priority < self.preemptor.priority if self.by_priority else False
        rows = (helps & np.where(own, lower, borrows)).nonzero()[0]
        sizes = known.sizes[rows][:, columns]
        oversize = np.asarray((sizes >= OVERSIZE * counts[columns]).all(axis=1))
        tiers: tuple[NDArray[Any], ...] = (*self._tiers(rows), oversize)
        above = sides.above[known.leaf[rows]]
        sort = np.lexsort((rows, -above, known.cost[rows], *tiers[::-1]))
        is_last = np.ones(len(rows), dtype=np.bool_)
        is_last[:-1] = np.any([np.diff(tier[sort]) != 0 for tier in tiers], axis=0)
        suffices = (sizes[sort].cumsum(axis=0) >= need[columns]).all(axis=1)
        suffices[-1:] = True
        return rows[sort], ((is_last & suffices).nonzero()[0] + 1).tolist() or [0]

    def _tiers(self, positions: Positions) -> tuple[NDArray[Any], ...]:
        """First gangs that have not started, then pods that their jobs can do without; then borrowers in other queues, before
        lower priorities in the preemptor's own.

        Last come those still within their min-runtime, the earliest end first: the preemptor waits for the last one it needs.
        """
        known = self.candidates
        own = known.leaf[positions] == self.path_rows[0]
        tiers: tuple[NDArray[Any], ...] = (own.astype(np.int64), known.priority[positions])
        if known.some_protected:
            tiers = (np.where(own, 0.0, known.protected_until[positions]), *tiers)
        return known.stage[positions], *tiers

    def _missing(self, taken: Iterable[Target]) -> Columns:  # [level, resource]
        missing = self.find_short()
        missing[0] |= self.exceeds_own_min(_positions(taken))
        return missing | self._own_side_borrowing() if self.stops_own_borrowers else missing

    def _own_side_borrowing(self) -> Columns:  # [level, resource]
        """Levels below a short one, and resources, where borrowing on the preemptor's own side denies it the right."""
        higher = np.logical_or.accumulate(np.asarray(self.find_short().any(axis=1))[::-1])[::-1]
        beyond = self.claims & ~self.within_min() & np.append(higher[1:], False)[:, None]
        beyond[0] = False
        return np.asarray(beyond)

    def _can_place(self, taken: Iterable[Target]) -> bool:
        return self.has_place_without(_positions(taken))

    def _until_quota_allows(self) -> list[Target] | None:
        """Choose the cheapest until nothing is short any more, then any in order; None when that cannot be reached."""
        taken: list[Target] = []
        short, within = self._missing(taken), self.within_min()
        left, covers, served = self._cover(taken), COVERS, 0
        while short.any():
            position = next(left, None)
            if position is None and covers > 0 and len(taken) > served:  # there was no right to some of the cheapest
                left, covers, served = self._cover(taken), covers - 1, len(taken)
            elif position is None and covers >= 0:
                left, covers = self._remaining(taken), -1
            elif position is None and self.stops_own_borrowers:
                return None
            elif position is None:
                self.stops_own_borrowers = True
                short, left = self._missing(taken), self._remaining(taken)
            elif (target := self.as_target(position, short, within)) is not None:
                taken.append(self.choose(target))
                before, short, within = within, self._missing(taken), self.within_min()
                if covers < 0 and (before != within).any():
                    left = self._remaining(taken)
        return taken

    def _cover(self, taken: Sequence[Target]) -> Iterator[int]:
        """The cheapest of the pool that free what is missing lowest on the path; all of each tier but the last needed."""
        missing = admission.find_missing(self.ledger, self.asked, self.path_rows)
        if not missing.any():
            return
        known, level = self.candidates, int(missing.any(axis=1).argmax())
        column = int((missing[level] / np.maximum(self.asked, 1)).argmax())
        rest = self._rest(taken)
        sides, leaves = find_sides(self.ledger, self.path_rows), known.leaf[rest]
        rest = rest[sides.borrows[leaves] & (sides.level[leaves] <= level) & (known.sizes[rest, column] > 0)]
        rest = rest[~self.foreign[rest]] if self.ledger.gpus[column] else rest
        ends = np.any([np.diff(tier) != 0 for tier in self._tiers(rest)], axis=0).nonzero()[0] + 1
        for tier in np.split(rest, ends):
            need = int(admission.find_missing(self.ledger, self.asked, self.path_rows)[level, column])
            limits = self._limits(tier, column)
            chosen = covering.cheapest(known.sizes[tier, column], known.cost[tier], need, limits)
            yield from (tier[chosen] if chosen else tier).tolist()
            if chosen:
                return

    def _limits(self, positions: Positions, column: int) -> covering.Limits:
        """What each node may lose of what is missing; one that is above its min in something else too may lose any of it."""
        ledger, over = self.ledger, self.ledger.held.claims - self.ledger.min
        room = over[:, ledger.deciding(column, self.asked.nonzero()[0].tolist())].max(axis=1, initial=0)
        others = np.asarray(admission.find_missing(ledger, self.asked, self.path_rows).any(axis=0))
        others[column] = False
        leaves = self.candidates.leaf[positions]
        paths = {leaf: ledger.rows[leaf] for leaf in np.unique(leaves).tolist()}
        nodes = {leaf: tuple(rows[: self.parting(rows)]) for leaf, rows in paths.items()}
        return covering.Limits(leaves, nodes, np.where((over[:, others] > 0).any(axis=1), UNLIMITED, room))

    def _until_placed(self, taken: list[Target]) -> list[Target] | None:
        """The quota has room, but no cluster: choose all candidates it has a right to, then the shortest prefix that
        suffices.
        """
        fewest, within = len(taken) + 1, self.within_min()
        taken, left = list(taken), self._remaining(taken)
        while (position := next(left, None)) is not None:
            target = self.as_target_anywhere(position, within)
            if target is None:
                continue
            taken.append(self.choose(target))
            before, within = within, self.within_min()
            if (before != within).any():
                left = self._remaining(taken)
        return self._shortest(taken, fewest)

    def _remaining(self, taken: Sequence[Target]) -> Iterator[int]:
        """The pool from the start: the right to one may exist only now that the preemptor's side is within min."""
        return iter(self._rest(taken).tolist())

    def _rest(self, taken: Sequence[Target]) -> Positions:
        return self.pool[~np.isin(self.pool, _positions(taken))] if taken else self.pool

    def _shortest(self, taken: list[Target], fewest: int) -> list[Target] | None:
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
            self.keep(target)
        return taken[:low]

    def _compatible(self, in_order: frozenset[int]) -> list[Target] | None:
        """Any that suffice and may go together: the first in order may leave no right to others that would do.

        What has not started goes in any case, where it may: nothing that runs goes because of what another is about to use.
        """
        unstarted = self._in_turn([each for each in self.pool.tolist() if not self.candidates.started[each]])
        reach = self._reach()
        if in_order.issuperset(reach):
            return None

        def would_suffice(positions: Sequence[int]) -> bool:
            going = self._going(positions)
            with self._without(going):
                within = self.within_min()
                denied = any(not within[need] for position in positions for need in reach[position].needs)
                if denied or self.find_short().any():
                    return False
            return self.has_place_without([*_positions(unstarted), *going])

        try:
            chosen = conflicts.find_compatible(list(reach), would_suffice, self._in_conflict)
        except conflicts.Spent:
            chosen = self._proposed(reach, would_suffice)
        return None if chosen is None else unstarted + self._in_turn(chosen)

    def _proposed(self, reach: Iterable[int], suffices: Callable[[Sequence[int]], bool]) -> list[int] | None:
        jobs = self.candidates.jobs

        def propose(prices: Mapping[int, float]) -> list[int]:
            position = {jobs[each].key: each for each in prices}
            return [position[key] for key in self.propose({key: prices[each] for key, each in position.items()})]

        prices = {position: self._price(position) for position in reach}
        return proposals.find(prices, propose, suffices, self._in_conflict)

    def _price(self, position: int) -> float:
        """The most that it takes of what a node above it may lose, 1 at most."""
        ledger, size = self.ledger, self.candidates.sizes[position]
        rows = ledger.rows[int(self.candidates.leaf[position])]
        over = (ledger.held.claims - ledger.min)[rows[: self.parting(rows)]]
        counted = (size > 0) & (over > 0) & self.consumed
        shares = np.where(counted, size / np.maximum(over, 1), 1.0).min(axis=1)
        return float(min(shares.max(initial=1e-6), 1.0))

    def _reach(self) -> dict[int, Target]:
        """All it has a right to, each as if nothing but what stands in its own way had gone before it."""
        within = self.within_min()
        while True:
            targets = {each: self.as_target_anywhere(each, within) for each in self.pool.tolist()}
            reach = {position: target for position, target in targets.items() if target is not None}
            with self._without(self._going(reach)):
                more = self.within_min() & ~within
            if not more.any():
                return reach
            within = within | more

    def _in_conflict(self, positions: Sequence[int]) -> list[int]:
        """Of these positions those below a node that would lose too much if all went; empty when all may go."""
        before = set(self.gone)
        with self.ledger.released([]):
            gone = _positions(self._in_turn(positions))
        self.gone.intersection_update(before)
        stays = [position for position in positions if position not in gone]
        if not stays:
            return []
        leaf_rows = [self.ledger.rows[row] for row in self.candidates.leaf[list(positions)].tolist()]
        rows = self.ledger.rows[int(self.candidates.leaf[stays[0]])]
        side = set(rows[: max(self.parting(rows), 1)])
        return [each for each, own in zip(positions, leaf_rows, strict=True) if side.intersection(own)]

    def _in_turn(self, positions: Sequence[int]) -> list[Target]:
        """Choose as many as may go, the smallest first: nothing can follow a larger one that could not follow a smaller."""
        taken: list[Target] = []
        sizes = self.candidates.sizes[:, self.claims if self.claims.any() else self.consumed]
        in_order = sorted(positions, key=lambda position: (sizes[position].tolist(), position))
        while True:
            within, before = self.within_min(), len(taken)
            for position in in_order:
                if (target := self.as_target_anywhere(position, within)) is not None:
                    taken.append(self.choose(target))
            if len(taken) == before:
                return taken

    def _going(self, positions: Iterable[int]) -> list[int]:
        return sorted({each for position in positions for each in self.going_with(position)})

    def _without(self, going: Iterable[int]) -> AbstractContextManager[None]:
        return self.ledger.released([self.candidates.jobs[position].charge for position in going])

    def _without_the_unnecessary(self, taken: list[Target]) -> list[Target]:
        """Drop targets that the others suffice without, the most valuable first: jobs before single pods."""
        of_position = {target.positions[0]: target for target in taken}
        in_order = [of_position[i] for i in self.pool[np.isin(self.pool, list(of_position))].tolist()]
        for target in sorted(reversed(in_order), key=lambda target: bool(target.job.part_of)):
            if target.job.part_of and int(self.candidates.whole[target.positions[0]]) in self.gone:
                continue
            rest = [other for other in taken if other is not target]
            self.keep(target)
            within = self.within_min()
            needed = all(within[need] for other in rest for need in other.needs)
            if needed and not self.find_short().any() and self._can_place(rest):
                taken = rest
            else:
                self.choose(target)
        return taken


def _positions(taken: Iterable[Target]) -> list[int]:
    return [position for target in taken for position in target.positions]
