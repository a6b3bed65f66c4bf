"""Keeps what windows promise free of jobs that may still run when they begin.

For each beginning that lies ahead there is a ledger of that moment: the tree with the windows that are open then, in which what
they promise is not lent, charged with the jobs that are not known to have ended. A gang that has room now and would have
none there does not start, unless a min covers it there. Of a gang without a known end that holds only within the window's lead;
before, it starts and may be evicted at the beginning. Pure: ends and time are given.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from jobs.core.admission.snapshot import Quota
from jobs.core.gang.types import Gang
from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.queues import admission
from quotas.core.queues.admission import BeforeWindow, Refused
from quotas.core.trees import window_trees, windows
from quotas.core.trees.tree import Tree
from quotas.core.trees.windows import Opening

Ends = Callable[[], Mapping[int, datetime]]
"""When jobs that are charged end at the latest, as far as that is known."""


def no_ends() -> Mapping[int, datetime]:
    return {}


@dataclass(frozen=True, slots=True)
class _Ahead:
    begin: datetime
    openings: list[Opening]
    ledger: Ledger

    @property
    def beginning(self) -> list[Opening]:
        return [each for each in self.openings if each.begin == self.begin]

    @property
    def lead(self) -> timedelta:
        return max(each.window.lead for each in self.beginning)

    def opening_of(self, resource: str) -> Opening:
        """The window that is to be named for a lack of this resource."""
        stating = (each for each in self.beginning if resource in each.window.min or resource in each.window.max)
        return next(stating, self.beginning[0])


class WindowGuard:
    """Of one run of the cycle."""

    def __init__(self, quota: Quota | None, charges: Mapping[int, Charge], now: datetime, ends: Ends = no_ends) -> None:
        self._tree = quota.stated or quota.ledger.tree if quota else None
        self._charges, self._now, self._ends = charges, now, ends
        self.is_idle = self._tree is None or not self._tree.has_windows
        """Whether no window is stated, so that nothing is ever refused."""
        self._answers: dict[tuple[str, int], Refused | None] = {}

    @cached_property
    def _ahead(self) -> list[_Ahead]:
        if self._tree is None or self.is_idle:
            return []
        ends = self._ends()
        return [
            _Ahead(begin, openings, self._ledger(window_trees.keeping(self._tree, openings), begin, ends))
            for begin, openings in windows.ahead(self._tree.nodes, self._now)
        ]

    def _ledger(self, tree: Tree, begin: datetime, ends: Mapping[int, datetime]) -> Ledger:
        """Of the moment when the windows of the tree begin, with the jobs that are not known to have ended by then."""
        stay = (
            charge
            for job, charge in self._charges.items()
            if charge.leaf in tree.by_path and (job not in ends or ends[job] > begin)
        )
        return Ledger.from_charges(tree, stay)

    def check(self, gang: Gang) -> BeforeWindow | None:
        """The refusal of a gang that must not start now; None: no window is in its way."""
        if self.is_idle or not gang.asks_quota:
            return None
        ends = self.end_of(gang)
        for each in self._ahead:
            if each.begin >= ends if ends else self._now < each.begin - each.lead:
                continue
            if (answer := self._in_the_way(gang, each)) is not None:
                return _refusal(answer, each, ends)
        return None

    def warning(self, gang: Gang) -> BeforeWindow | None:
        """What it may be evicted for although it may start: a window that begins while it may still run."""
        if self.is_idle or not gang.asks_quota or self.end_of(gang) is not None:
            return None
        refusals = ((self._in_the_way(gang, each), each) for each in self._ahead)
        return next((_refusal(answer, each, None) for answer, each in refusals if answer is not None), None)

    def placed(self, gang: Gang) -> None:
        """Counts a gang that was placed in this run."""
        if self.is_idle or not gang.asks_quota:
            return
        ends = self.end_of(gang)
        for each in self._ahead:
            if (ends is None or ends > each.begin) and gang.leaf in each.ledger.path_rows:
                each.ledger.charge(gang.charge)

    def end_of(self, gang: Gang) -> datetime | None:
        """When the gang would have ended at the latest if it started now; None: nothing says."""
        rules = (
            self._tree.by_path[gang.leaf].attributes.time if self._tree and gang.leaf in self._tree.by_path else None
        )
        return known_end(self._now, gang.runtime_s, gang.deadline_at, rules.max_runtime if rules else None)

    def _in_the_way(self, gang: Gang, ahead: _Ahead) -> Refused | None:
        """The refusal of the gang by what holds once the window has begun; None: there is room, or a min covers it."""
        if gang.leaf not in ahead.ledger.path_rows:
            return None
        charge = gang.charge
        answer = admission.check_admission(ahead.ledger, charge.leaf, charge.amounts, preemptible=charge.preemptible)
        if not isinstance(answer, Refused) or answer.entitled:
            return None
        has_min = ahead.ledger.promised[ahead.ledger.column[answer.resource]]
        if answer.bound is admission.Bound.MAX and has_min and admission.is_promised(ahead.ledger, charge):
            return None
        return answer


def known_end(
    start: datetime, runtime_s: float | None, deadline: datetime | None, max_runtime: timedelta | None
) -> datetime | None:
    """When a job that starts at ``start`` has ended at the latest, by what it declares and what its queue allows."""
    limits = [deadline] if deadline else []
    if runtime_s is not None:
        limits.append(start + timedelta(seconds=runtime_s))
    if max_runtime is not None:
        limits.append(start + max_runtime)
    return min(limits, default=None)


def _refusal(answer: Refused, ahead: _Ahead, ends: datetime | None) -> BeforeWindow:
    opening = ahead.opening_of(answer.resource)
    return BeforeWindow(
        code=admission.Code.WINDOW_AHEAD, path=answer.path, resource=answer.resource, asked=answer.asked,
        used=answer.used + answer.kept, kept=answer.kept, limit=answer.limit, bound=answer.bound, entitled=False,
        window=opening.path, begin=opening.begin, end=opening.end, ends=ends,
    )  # fmt: skip
