"""Reclaim between queues that borrow, for nodes that state it: who borrows more makes room for who would borrow less.

Two rights among the children of a node. With `reclaim: FairShare` a job may stop what a sibling borrows if its own side then
still borrows less than the sibling did, each divided by its weight; also if it took all the room that is left over. With
`borrowing-priority` a job of that priority may stop what siblings' jobs below it borrow, whatever the shares; and no share
takes from such a job for one below. Compared is what is borrowed of the resource that is short (`borrowed_shares`).

The nearest ancestor is asked first, there the side that borrows most, and in it jobs of the lowest priority that lose the
least work. First those go whose side then still borrows as much as the preemptor's. Never goes what is not above its min on
each level up to the ancestor, what could come straight back by its min, what is within its min-runtime, the job that the
preemptor was stopped for, for a share no gang of `OVERSIZE` times the preemptor's size, and nothing where as much as that
together would not do.

It comes to rest, because a job has these rights once: the caller marks the unit (`Unit.has_claimed`) when jobs are stopped for
it. Each such eviction is paid for by a submission, so no job is stopped so twice for another, whatever else goes on. Jobs of
queues that preempt by priority have no such right: with both they would stop others for a job that is stopped within its queue.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from quotas.core.accounts.borrowed_shares import BorrowedShares, Share, as_percent, is_less
from quotas.core.accounts.ledger import Charge, Ledger, Units
from quotas.core.queues import admission
from quotas.core.queues.admission import Bound, Refused
from quotas.core.queues.order import Unit
from quotas.core.reclaiming.candidates import Candidates
from quotas.core.reclaiming.targeting import OVERSIZE, CanPlace, Columns, Targeting, as_reclaim
from quotas.core.reclaiming.victims import Cause, Reclaim, Target
from quotas.core.trees.tree import Attributes, PreemptPolicy, ReclaimPolicy

_AFTER_ALL = 1e12
"""More than any share divided by a weight."""


def may_claim(ledger: Ledger, unit: Unit) -> bool:
    """Whether the job may have a right against queues that borrow."""
    rules = ledger.tree.by_path[unit.leaf].attributes
    if unit.has_claimed or not unit.charge.preemptible or rules.preempt_policy is PreemptPolicy.LOWER_PRIORITY:
        return False
    return bool(_levels(ledger, unit))


def share_after(ledger: Ledger, charge: Charge) -> float:
    """What the side of this charge would borrow of what it asks for, by weight, below the nearest node that shares fairly.

    The order in which borrowers claim.
    """
    path_rows, asked = ledger.path_rows[charge.leaf].tolist(), ledger.vector(charge.amounts)
    nodes = ledger.tree.nodes
    below = (row for row, above in zip(path_rows, path_rows[1:], strict=False) if _shares(nodes[above].attributes))
    row = next(below, None)
    if row is None:
        return 0.0
    without_weight, share = BorrowedShares(ledger, _compared(ledger, asked > 0, asked)).with_more(row, asked)
    return share + (_AFTER_ALL if without_weight else 0.0)


def search(
    ledger: Ledger, preemptor: Unit, candidates: Callable[[], Candidates], can_place: CanPlace
) -> Reclaim | None:
    """The jobs to stop for one that would borrow; None when none would help or it has no right to them.

    As `reclaim.search`, which is asked first. Leaves the ledger as it was.
    """
    if not may_claim(ledger, preemptor):
        return None
    answer = admission.check_admission(ledger, preemptor.leaf, preemptor.charge.amounts)
    if isinstance(answer, Refused) and (answer.bound is Bound.MIN or answer.code is admission.Code.NEVER_FITS):
        return None
    claim = _Claim(ledger, preemptor, can_place)
    taken = claim.run(candidates()) if claim.may_succeed() else None
    return as_reclaim(ledger, preemptor, taken) if taken else None


def _levels(ledger: Ledger, unit: Unit) -> list[int]:
    """The levels of its path with a node that gives it a right, the nearest first."""
    rules = [ledger.tree.nodes[row].attributes for row in ledger.path_rows[unit.leaf].tolist()]
    return [level for level, each in enumerate(rules) if level and (_shares(each) or _is_urgent(unit.priority, each))]


def _shares(rules: Attributes) -> bool:
    return rules.reclaim is ReclaimPolicy.FAIR_SHARE


def _is_urgent(priority: int, rules: Attributes) -> bool:
    return rules.borrowing_priority is not None and priority >= rules.borrowing_priority


def _compared(ledger: Ledger, short: Columns, asked: Units) -> list[int]:
    """The resources whose min decides about what is short."""
    request = asked.nonzero()[0].tolist()
    decides = {each for column in short.nonzero()[0].tolist() for each in ledger.deciding(column, request)}
    return sorted(decides)


@dataclass(slots=True)
class _Line:
    """The candidates of one leaf, in the order of their going."""

    rows: list[int]
    """From the leaf up to the side, just below the ancestor."""
    own: int
    """The row of the preemptor's side, just below the ancestor."""
    rules: Attributes
    """Of the ancestor."""
    positions: list[int] = field(default_factory=list)
    next: int = 0
    """The first that the present rule has not looked at."""

    @property
    def side(self) -> int:
        return self.rows[-1]


class _Claim(Targeting):
    def __init__(self, ledger: Ledger, preemptor: Unit, can_place: CanPlace) -> None:
        super().__init__(ledger, preemptor, can_place)
        short: Columns = np.asarray(self.find_short().any(axis=0))
        self.needed: Columns = short if short.any() else self.consumed
        """What targets have to free."""
        missing = admission.find_missing(ledger, self.asked, self.path_rows).max(axis=0)
        self.missing: Units = missing if short.any() else np.where(self.consumed, self.asked, 0)
        consumed = self.needed & self.consumed
        self.shares = BorrowedShares(ledger, _compared(ledger, consumed, self.asked))
        self.before: dict[int, tuple[_Line, Share]] = {}
        """Of each target by share its line, and what its side borrowed before it went."""

    def may_succeed(self) -> bool:
        """Whether nothing is short below the nearest node that gives it a right."""
        lowest = _levels(self.ledger, self.preemptor)[0]
        return not self.find_short()[:lowest].any()

    def run(self, candidates: Candidates) -> list[Target] | None:
        self.look_at(candidates)
        self.pool: Columns = np.asarray(candidates.stays & (candidates.sizes[:, self.needed] > 0).any(axis=1))
        self.pool &= np.asarray((candidates.protected_until == 0) | ~candidates.started)
        if (barred := candidates.position.get(self.preemptor.stopped_for)) is not None:
            self.pool[[barred, *candidates.parts.get(barred, ())]] = False
        if self.needed[self.ledger.gpus].any():
            self.pool &= np.asarray(~self.foreign)
        while True:
            # The cheapest may take a side to its min before enough is free, where a larger one alone would do.
            taken, vain = self._search_for(cheapest=True)
            if taken is None:
                taken, vain = self._search_for(cheapest=False)
            if not vain:
                return taken
            self.pool[[position for target in vain for position in target.positions]] = False

    def _search_for(self, *, cheapest: bool) -> tuple[list[Target] | None, list[Target]]:
        """Targets that suffice, and which of them would go in vain. ``cheapest``: first what loses least, else the largest."""
        self.gone.clear()
        with self.ledger.released([]):
            taken = self._search(cheapest=cheapest)
            vain = self._in_vain(taken or [])
        self.shares.changed(range(len(self.ledger.parent)))
        return taken, vain

    def _search(self, *, cheapest: bool) -> list[Target] | None:
        taken: list[Target] = []
        for level in _levels(self.ledger, self.preemptor):
            lines: list[_Line] | None = None
            for choose in self._rules(level):
                lines = self._lines(level, cheapest=cheapest) if lines is None else lines
                for target in self._take(lines, choose):
                    taken.append(target)
                    if self._suffices(taken):
                        return self._without_the_unnecessary(taken)
                    if self._is_too_much():
                        return None
        return None

    def _is_too_much(self) -> bool:
        """Whether what is chosen already is `OVERSIZE` times the preemptor: then its place is not to be had so."""
        freed = self.candidates.sizes[sorted(self.gone)].sum(axis=0)
        return bool((freed >= OVERSIZE * self.asked)[self.needed].all())

    def _suffices(self, taken: list[Target]) -> bool:
        return not self.find_short().any() and self.can_place(frozenset(target.job.key for target in taken))

    def _without_the_unnecessary(self, taken: list[Target]) -> list[Target]:
        """The right to the others stays: their sides only borrow more with one that is kept."""
        for target in taken[::-1]:
            if target.job.part_of and int(self.candidates.whole[target.positions[0]]) in self.gone:
                continue
            rest = [other for other in taken if other is not target]
            self.keep(target)
            if self._suffices(rest):
                taken = rest
            else:
                self.choose(target)
        return taken

    def _in_vain(self, taken: list[Target]) -> list[Target]:
        """Those that could come straight back: by a share, once others have what is left over, or by the min of their side."""
        freed = sum((self.ledger.vector(each.amounts) for target in taken for each in target.charges), 0 * self.asked)
        most = self.asked + np.maximum(freed - self.missing, 0)
        by_share = [target for target in taken if target.victim.cause is Cause.FAIR_SHARE]
        return [target for target in by_share if not self._borrows_less(most, *self.before[target.positions[0]])] or [
            target for target in taken if self._has_a_min(target)
        ]

    def _borrows_less(self, more: Units, line: _Line, than: Share) -> bool:
        return is_less(self.shares.with_more(line.own, more), than)

    def _has_a_min(self, target: Target) -> bool:
        """Whether the job would be within the min of its leaf, or of a node above it on its side."""
        ledger, rows = self.ledger, self.ledger.path_rows[target.job.leaf]
        request = ledger.vector(target.job.charge.amounts)
        claims = ledger.promised & (request > 0)
        within = admission.within_min(ledger, request, rows)[: self.parting(rows.tolist())]
        return bool(claims.any() and within[:, claims].all(axis=1).any())

    def _lines(self, level: int, *, cheapest: bool) -> list[_Line]:
        """The candidates that part from the preemptor's path at this level."""
        known, ledger = self.candidates, self.ledger
        row, own = int(self.path_rows[level]), int(self.path_rows[level - 1])
        oversize = (known.sizes >= OVERSIZE * np.maximum(self.missing, 1))[:, self.needed].all(axis=1)
        value = known.cost if cheapest else -known.sizes[:, self.needed].min(axis=1)
        order = np.lexsort((np.arange(len(known.jobs)), known.cost, value, oversize, known.priority, known.stage))
        lines: dict[int, _Line | None] = {}
        for position in order[self.pool[order]].tolist():
            leaf = int(known.leaf[position])
            if leaf not in lines:
                rows = ledger.rows[leaf][: self.parting(ledger.rows[leaf])]
                parts_here = bool(rows) and ledger.parent[rows[-1]] == row
                lines[leaf] = _Line(rows, own, ledger.tree.nodes[row].attributes) if parts_here else None
            if (line := lines[leaf]) is not None:
                line.positions.append(position)
        return [line for line in lines.values() if line is not None]

    def _rules(self, level: int) -> Iterator[Callable[[_Line, int], Target | None]]:
        node, own = self.ledger.tree.nodes[int(self.path_rows[level])], int(self.path_rows[level - 1])
        if _is_urgent(self.preemptor.priority, node.attributes):
            yield self._by_priority
        most = self.shares.with_more(own, self.asked)
        sides = (self.ledger.row[child.path] for child in self.ledger.tree.children[node.path])
        if _shares(node.attributes) and any(is_less(most, self.shares.of(side)) for side in sides if side != own):
            yield self._by_final_share
            yield self._by_share

    def _take(self, lines: list[_Line], choose: Callable[[_Line, int], Target | None]) -> Iterator[Target]:
        """Targets by one rule, of the side that borrows most at each time. One that is not allowed now will not be later."""
        for line in lines:
            line.next = 0
        while left := [line for line in lines if line.next < len(line.positions)]:
            line = min(left, key=self._order)
            position = line.positions[line.next]
            line.next += 1
            if position not in self.gone and (target := choose(line, position)) is not None:
                yield self.choose(target)

    def _order(self, line: _Line) -> tuple[list[tuple[bool, float]], int]:
        shares = map(self.shares.of, reversed(line.rows))
        return [(not without_weight, -share) for without_weight, share in shares], line.rows[0]

    def _by_priority(self, line: _Line, position: int) -> Target | None:
        if _is_urgent(int(self.candidates.priority[position]), line.rules):
            return None
        why = f"below the borrowing-priority {line.rules.borrowing_priority}, which {self.preemptor.leaf}'s job has"
        return self._target(line, position, Cause.BORROWING_PRIORITY, why)

    def _by_final_share(self, line: _Line, position: int) -> Target | None:
        """With the side still borrowing as much as the preemptor's when the job is gone."""
        target = self._by_share(line, position)
        if target is None:
            return None
        self.choose(target)
        after = self.shares.of(line.side)
        self.keep(target)
        return target if not is_less(after, self.shares.with_more(line.own, self.asked)) else None

    def _by_share(self, line: _Line, position: int) -> Target | None:
        if _is_urgent(int(self.candidates.priority[position]), line.rules) and not _is_urgent(
            self.preemptor.priority, line.rules
        ):
            return None
        size = self.candidates.sizes[self.going_with(position)].sum(axis=0)
        if (size >= OVERSIZE * self.asked)[self.needed].all():
            return None
        own, theirs = self.shares.with_more(line.own, self.asked), self.shares.of(line.side)
        if not is_less(own, theirs):
            return None
        self.before[position] = line, theirs
        side = self.ledger.tree.nodes[line.own].path
        why = f"a share of {as_percent(theirs)} by its weight, and {side} would borrow {as_percent(own)}"
        return self._target(line, position, Cause.FAIR_SHARE, why)

    def _target(self, line: _Line, position: int, cause: Cause, why: str) -> Target | None:
        covered = self.ledger.unstated[line.own]
        above = self.above_min(position, line.rows, covered) & self.needed & (self.candidates.sizes[position] > 0)
        if not above.any():
            return None
        detail = f"{self.ledger.tree.nodes[line.side].path} borrows {why}"
        return self.target(self.going_with(position), cause, line.side, int(above.argmax()), detail=detail)

    def choose(self, target: Target) -> Target:
        self._changed(target)
        return super().choose(target)

    def keep(self, target: Target) -> None:
        self._changed(target)
        super().keep(target)

    def _changed(self, target: Target) -> None:
        self.shares.changed(self.ledger.rows[self.ledger.row[target.job.leaf]])
