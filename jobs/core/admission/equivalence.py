"""Equivalence classes of waiting gangs: members ask the same of the same leaf and the same clusters, so one answer serves all.

A class keeps its answer (refused by the quota, or infeasible on every cluster) until an event that could change it; which
events those are is known to `jobs.core.scheduling.refusal_index`. A class also keeps the last reason that was reported, and
selects the members whose stored reason is rewritten: a reason that changes with every cycle must not rewrite thousands of rows
each time.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from jobs.core.gang.flavors import FlavorOption
from jobs.core.gang.requirements import GangRequirements
from jobs.core.gang.types import Gang
from jobs.core.reasons import Reason
from quotas.core.queues.admission import Refused
from quotas.core.queues.order import Place, Unit

Key = tuple[Hashable, Hashable]
"""(shape asked of the quota, shape asked of the clusters)."""
_CODE_CHANGE_MEMBERS = 20
"""Number of first members whose reason is rewritten at once when its code changes; the others follow with the next refresh."""
_CODE_CHANGE_INTERVAL = timedelta(seconds=5)
"""Minimum time between two such rewrites: a code that alternates from cycle to cycle need not be reported each time."""
_REFRESHED_PER_CYCLE = 100
"""Members whose amounts are refreshed in one cycle, until all are: a start must not wait for a thousand writes."""


@dataclass(slots=True, eq=False)
class EquivalenceClass:
    key: Key
    example: Gang
    """A member, of no flavor yet."""
    leaf: str
    """Empty when the members ask no quota."""
    only: tuple[str, ...]
    """The clusters that their queue may use; empty: all."""
    members: list[tuple[Place, int]] = field(default_factory=list)
    """(place in the queue's order, job), sorted."""
    refusal: Refused | None = None
    """The quota's refusal of every member."""
    infeasible: bool = False
    """No cluster can hold a member now."""
    preemption_may_help: bool = False
    """Some cluster would hold a member if others were gone."""
    reason: Reason | None = None
    """The current reason; members may still have an older one stored."""
    reported_at: datetime | None = None
    """When the last refresh of all members ended."""
    code_reported_at: datetime | None = None
    """When the first members were last reported a changed code."""
    code_changed: bool = False
    """The code has changed and was not reported to the first members yet."""
    unreported: set[int] = field(default_factory=set)
    """Members to report in the next `members_to_report`."""
    stale: bool = False
    """Some members have another reason stored than the current one."""
    refresh_queue: list[int] = field(default_factory=list)
    """Members of the running refresh that are not reported yet, last first."""
    refresh_reason: Reason | None = None
    no_targets_since: int = -1
    """The scheduler's preemption epoch in which a search for preemption targets failed."""

    sized: tuple[Hashable, bool] = (None, False)
    """Whether its gangs are big, and the token with which that was computed."""
    options: tuple[FlavorOption, ...] = ()
    """The flavors that members may use, in the order in which they are tried; empty: the tree has none."""
    at: int = 0
    """The option that is tried, or in the end waited for."""
    answers: dict[int, Refused | None] = field(default_factory=dict)
    """Why each option that was tried was not possible: the quota's refusal, or None where no cluster has room."""
    past_stop_at: datetime | None = None
    """The cycle in which no preemption targets exist in its flavors, so that it does not wait before it tries the next."""

    @property
    def option(self) -> FlavorOption | None:
        return self.options[self.at] if self.options else None

    @property
    def sample(self) -> Gang:
        return self.of_flavor(self.example)

    def of_flavor(self, gang: Gang) -> Gang:
        """The member with the flavor that is tried now."""
        return gang if self.option is None else self.option.of(gang)

    @property
    def shape(self) -> Hashable:
        """What its members ask of clusters, with the flavor that is tried now."""
        return self.shape_at(self.at)

    def shape_at(self, at: int) -> Hashable:
        return (self.options[at].name, self.key[1]) if self.options else self.key[1]

    @property
    def shapes(self) -> list[Hashable]:
        return [self.shape_at(at) for at in range(max(len(self.options), 1))]

    @property
    def refused(self) -> bool:
        return self.refusal is not None or self.infeasible

    def is_big(self, token: Hashable, big: Callable[[GangRequirements], bool]) -> bool:
        """Whether members are big gangs; computed again only when ``token`` has changed."""
        if self.sized[0] != token:
            self.sized = (token, big(self.sample.demand))
        return self.sized[1]

    def is_refresh_due(self, now: datetime, patience: timedelta) -> bool:
        return _is_past(self.reported_at, now, patience)

    def is_code_due(self, now: datetime) -> bool:
        """Whether the first members are to be reported a changed code now."""
        return self.code_changed and _is_past(self.code_reported_at, now, _CODE_CHANGE_INTERVAL)

    def members_to_report(self, reason: Reason, now: datetime, patience: timedelta) -> list[int]:
        """Set the current reason and return the jobs whose stored reason is to be rewritten with it.

        New members always; all members, some in each cycle, when the reason has changed and the last refresh is older than
        ``patience``; before that only the first few, if the code has changed.
        """
        before = self.reason
        self.code_changed |= before is not None and before.code is not reason.code
        if before is not None and (before.code, before.message) == (reason.code, reason.message):
            reason = before
        else:
            self.stale = True
        if before is None:
            self.unreported.update(job for _, job in self.members)
            self.reported_at, self.stale = now, False
        elif self.stale and self.is_refresh_due(now, patience):
            self._refresh_some(reason, now)
        if self.is_code_due(now):
            self.unreported.update(job for _, job in self.members[:_CODE_CHANGE_MEMBERS])
            self.code_reported_at, self.code_changed = now, False
        self.reason = reason
        jobs, self.unreported = sorted(self.unreported), set()
        return jobs

    def _refresh_some(self, reason: Reason, now: datetime) -> None:
        """Begin or continue a refresh of all members. One that began with an older reason leaves the class stale."""
        jobs = [job for _, job in self.members]
        if not self.refresh_queue:
            self.refresh_queue, self.refresh_reason = jobs[::-1], reason
        self.unreported.update({*self.refresh_queue[-_REFRESHED_PER_CYCLE:]}.intersection(jobs))
        del self.refresh_queue[-_REFRESHED_PER_CYCLE:]
        if not self.refresh_queue:
            self.reported_at, self.stale = now, self.refresh_reason is not reason


def _is_past(since: datetime | None, now: datetime, patience: timedelta) -> bool:
    """Whether ``patience`` is over; also when the clock was set back to before ``since``."""
    return since is None or not timedelta() <= now - since < patience


class EquivalenceClasses:
    """All classes with members, by key, by leaf and by job."""

    def __init__(self) -> None:
        self.by_key: dict[Key, EquivalenceClass] = {}
        self.by_leaf: dict[str, dict[Key, EquivalenceClass]] = {}
        self.by_job: dict[int, EquivalenceClass] = {}
        self.units: dict[int, Unit] = {}
        """Of no flavor."""
        self.changed: dict[EquivalenceClass, None] = {}
        """Classes whose reason may have changed since `pending_reasons` was last called."""
        self.stale: dict[EquivalenceClass, None] = {}
        """Classes with members that have an older reason stored."""

    def add(self, job: int, unit: Unit, group: EquivalenceClass) -> None:
        """Add a member to the class with the key of ``group``, which becomes that class if there is none."""
        group = self.by_key.setdefault(group.key, group)
        self.by_leaf.setdefault(group.leaf, {})[group.key] = group
        insort(group.members, (unit.place, job))
        group.unreported.add(job)
        self.by_job[job], self.units[job] = group, unit
        self.changed[group] = None

    def unit(self, job: int) -> Unit:
        """Its place in its queue, with what its leaf would be charged for the flavor that is tried now."""
        unit, group = self.units[job], self.by_job[job]
        return unit if group.option is None else replace(unit, charge=group.sample.charge)

    def remove(self, job: int) -> EquivalenceClass | None:
        """Remove a member and return its former class, which is dropped when it was the last one."""
        group = self.by_job.pop(job, None)
        if group is None:
            return None
        entry = (self.units.pop(job).place, job)
        del group.members[bisect_left(group.members, entry)]
        group.unreported.discard(job)
        if not group.members:
            del self.by_key[group.key], self.by_leaf[group.leaf][group.key]
            self.changed.pop(group, None)
            self.stale.pop(group, None)
        return group

    def pending_reasons(self, now: datetime, patience: timedelta) -> list[EquivalenceClass]:
        """The classes for which there may be a reason to report now, each once; they are not pending afterwards."""
        due = (group for group in self.stale if group.is_refresh_due(now, patience) or group.is_code_due(now))
        pending = dict.fromkeys([*self.changed, *due])
        self.changed.clear()
        for group in pending:
            self.stale.pop(group, None)
        return list(pending)

    def first_of(self, leaf: str) -> int:
        """The first waiting job of a leaf that has one."""
        return min(group.members[0] for group in self.by_leaf[leaf].values())[1]

    def waiting_since(
        self, since: datetime, most: int, token: Hashable, big: Callable[[GangRequirements], bool]
    ) -> list[int]:
        """For each class of big gangs the first of its ``most`` first members that has waited since then, in queue order."""
        first_members: list[tuple[Place, int]] = []
        for group in self.by_key.values():
            if not group.is_big(token, big):
                continue
            old = (member for member in group.members[:most] if self.units[member[1]].queued_at <= since)
            if (first := next(old, None)) is not None:
                first_members.append(first)
        return [job for _, job in sorted(first_members)]

    def in_order(self, leaf: str) -> Iterator[tuple[Place, int]]:
        """All waiting jobs of a leaf in the queue's order."""
        return iter(sorted(entry for group in self.by_leaf.get(leaf, {}).values() for entry in group.members))
