"""Waiting gangs in lines: all of one line ask the same of the same leaf and of every cluster, so one answer is everybody's.

A line remembers its answer until something that could change it has happened; who finds that out is the scheduler.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from jobs.core.placing.asks import Demand
from jobs.core.reasons import Reason
from jobs.core.world import Gang
from quotas.core.admission import Refused
from quotas.core.order import Place, Unit

Key = tuple[Hashable, Hashable]
"""(shape asked of the quota, shape asked of the clusters)."""


@dataclass(slots=True, eq=False)
class Line:
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
    untold: set[int] = field(default_factory=set)
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

    def tell(self, reason: Reason, now: datetime, patience: timedelta) -> list[int]:
        """Who is to be told: all of them when it is another reason, or amounts have changed and the last word is old."""
        before = self.reason
        same = before is not None and before.code is reason.code
        if same and before is not None and before.message == reason.message:
            reason = before
        elif not same or self.told_at is None or now - self.told_at >= patience or now < self.told_at:
            self.untold.update(job for _, job in self.members)
            self.told_at = now
        self.reason = reason
        told, self.untold = sorted(self.untold), set()
        return told


class Lines:
    """All lines, by what they ask and by leaf."""

    def __init__(self) -> None:
        self.by_key: dict[Key, Line] = {}
        self.by_leaf: dict[str, dict[Key, Line]] = {}
        self.of: dict[int, Line] = {}
        self.unit: dict[int, Unit] = {}

    def put(self, job: int, unit: Unit, line: Line) -> None:
        line = self.by_key.setdefault(line.key, line)
        self.by_leaf.setdefault(line.leaf, {})[line.key] = line
        insort(line.members, (unit.place, job))
        line.untold.add(job)
        self.of[job], self.unit[job] = line, unit

    def drop(self, job: int) -> Line | None:
        line = self.of.pop(job, None)
        if line is None:
            return None
        entry = (self.unit.pop(job).place, job)
        del line.members[bisect_left(line.members, entry)]
        line.untold.discard(job)
        if not line.members:
            del self.by_key[line.key], self.by_leaf[line.leaf][line.key]
        return line

    def first(self, leaf: str) -> int:
        """Who is first of a leaf where somebody waits."""
        return min(line.members[0] for line in self.by_leaf[leaf].values())[1]

    def long(self, since: datetime, looked_at: int, stays: Hashable, big: Callable[[Demand], bool]) -> list[int]:
        """Of each line of big gangs the first that has waited since then, among so many; by their place."""
        found: list[tuple[Place, int]] = []
        for line in self.by_key.values():
            old = (member for member in line.members[:looked_at] if self.unit[member[1]].queued_at <= since)
            first = next(old, None)
            if first is not None and line.is_big(stays, big):
                found.append(first)
        return [job for _, job in sorted(found)]

    def in_order(self, leaf: str) -> Iterator[tuple[Place, int]]:
        """Everybody of a leaf."""
        return iter(sorted(entry for line in self.by_leaf.get(leaf, {}).values() for entry in line.members))
