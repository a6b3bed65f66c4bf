"""Waiting gangs in lines: all of one line ask the same of the same leaf and of every cluster, so one answer is everybody's.

A line remembers its answer until something that could change it has happened; who finds that out is the scheduler.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from jobs.core.gang.requirements import Demand
from jobs.core.gang.types import Gang
from jobs.core.reasons import Reason
from quotas.core.admission import Refused
from quotas.core.order import Place, Unit

Key = tuple[Hashable, Hashable]
"""(shape asked of the quota, shape asked of the clusters)."""
_AT_ONCE = 20
"""Of a line whose reason is another one, so many are told of it at once; the others with the amounts."""
_AGAIN = timedelta(seconds=5)
"""When they are told of the next other reason at the soonest: what comes and goes every moment need not be told each time."""
_IN_A_CYCLE = 100
"""Of a line whose amounts are others, so many are told in each cycle, until all are: nobody's start waits for a thousand."""


@dataclass(slots=True, eq=False)
class EquivalenceClass:
    key: Key
    sample: Gang
    leaf: str
    """Empty when they ask no quota."""
    only: tuple[str, ...]
    """The clusters that their queue may use; empty: all."""
    members: list[tuple[Place, int]] = field(default_factory=list)
    refusal: Refused | None = None
    nowhere: bool = False
    crowded: bool = False
    """Some cluster would hold it if others were gone."""
    reason: Reason | None = None
    told_at: datetime | None = None
    turned_at: datetime | None = None
    """When the first of them were told last of another code than before."""
    turned: bool = False
    """They are to be told of another one."""
    untold: set[int] = field(default_factory=set)
    late: bool = False
    """Some were told otherwise."""
    round: list[int] = field(default_factory=list)
    """Who is to be told yet of those who were there when it began."""
    round_reason: Reason | None = None
    hopeless: int = -1
    """When nobody was found to take a place back from, as the scheduler counts."""

    sized: tuple[Hashable, bool] = (None, False)
    """Whether its gangs are big, and while what that stays true."""

    @property
    def refused(self) -> bool:
        return self.refusal is not None or self.nowhere

    def is_big(self, stays: Hashable, big: Callable[[Demand], bool]) -> bool:
        if self.sized[0] != stays:
            self.sized = (stays, big(self.sample.demand))
        return self.sized[1]

    def is_due(self, now: datetime, patience: timedelta) -> bool:
        """Whether the last word to everybody is old."""
        return _is_past(self.told_at, now, patience)

    def turns(self, now: datetime) -> bool:
        """Whether the first are to be told of another code now."""
        return self.turned and _is_past(self.turned_at, now, _AGAIN)

    def tell(self, reason: Reason, now: datetime, patience: timedelta) -> list[int]:
        """Who is to be told: all, by and by, when it is news and the last word is old; until then a few, if its code is new.

        A reason that comes and goes would otherwise have thousands rewritten every time.
        """
        before = self.reason
        self.turned |= before is not None and before.code is not reason.code
        if before is not None and (before.code, before.message) == (reason.code, reason.message):
            reason = before
        else:
            self.late = True
        if before is None:
            self.untold.update(job for _, job in self.members)
            self.told_at, self.late = now, False
        elif self.late and self.is_due(now, patience):
            self._go_round(reason, now)
        if self.turns(now):
            self.untold.update(job for _, job in self.members[:_AT_ONCE])
            self.turned_at, self.turned = now, False
        self.reason = reason
        told, self.untold = sorted(self.untold), set()
        return told

    def _go_round(self, reason: Reason, now: datetime) -> None:
        here = [job for _, job in self.members]
        if not self.round:
            self.round, self.round_reason = here[::-1], reason
        self.untold.update({*self.round[-_IN_A_CYCLE:]}.intersection(here))
        del self.round[-_IN_A_CYCLE:]
        if not self.round:
            self.told_at, self.late = now, self.round_reason is not reason


def _is_past(since: datetime | None, now: datetime, patience: timedelta) -> bool:
    return since is None or not timedelta() <= now - since < patience


class EquivalenceClasses:
    """All lines, by what they ask and by leaf."""

    def __init__(self) -> None:
        self.by_key: dict[Key, EquivalenceClass] = {}
        self.by_leaf: dict[str, dict[Key, EquivalenceClass]] = {}
        self.of: dict[int, EquivalenceClass] = {}
        self.unit: dict[int, Unit] = {}
        self.news: dict[EquivalenceClass, None] = {}
        """Those of which there may be something to tell."""
        self.late: dict[EquivalenceClass, None] = {}
        """Those of which not everybody was told the last."""

    def put(self, job: int, unit: Unit, line: EquivalenceClass) -> None:
        line = self.by_key.setdefault(line.key, line)
        self.by_leaf.setdefault(line.leaf, {})[line.key] = line
        insort(line.members, (unit.place, job))
        line.untold.add(job)
        self.of[job], self.unit[job] = line, unit
        self.news[line] = None

    def drop(self, job: int) -> EquivalenceClass | None:
        line = self.of.pop(job, None)
        if line is None:
            return None
        entry = (self.unit.pop(job).place, job)
        del line.members[bisect_left(line.members, entry)]
        line.untold.discard(job)
        if not line.members:
            del self.by_key[line.key], self.by_leaf[line.leaf][line.key]
            self.news.pop(line, None)
            self.late.pop(line, None)
        return line

    def to_tell(self, now: datetime, patience: timedelta) -> list[EquivalenceClass]:
        """Those of which there may be something to tell now; each once."""
        late = (line for line in self.late if line.is_due(now, patience) or line.turns(now))
        found = dict.fromkeys([*self.news, *late])
        self.news.clear()
        for line in found:
            self.late.pop(line, None)
        return list(found)

    def first(self, leaf: str) -> int:
        """Who is first of a leaf where somebody waits."""
        return min(line.members[0] for line in self.by_leaf[leaf].values())[1]

    def long(self, since: datetime, looked_at: int, stays: Hashable, big: Callable[[Demand], bool]) -> list[int]:
        """Of each line of big gangs the first that has waited since then, among so many; by their place."""
        found: list[tuple[Place, int]] = []
        for line in self.by_key.values():
            if not line.is_big(stays, big):
                continue
            old = (member for member in line.members[:looked_at] if self.unit[member[1]].queued_at <= since)
            if (first := next(old, None)) is not None:
                found.append(first)
        return [job for _, job in sorted(found)]

    def in_order(self, leaf: str) -> Iterator[tuple[Place, int]]:
        """Everybody of a leaf."""
        return iter(sorted(entry for line in self.by_leaf.get(leaf, {}).values() for entry in line.members))
