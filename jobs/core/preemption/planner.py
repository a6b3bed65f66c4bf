"""Whom to take back from, for those who wait although they were promised their place: asked once the cycle is over.

It is played in the world *to come*, where everybody who leaves is gone. There the claimants stand in their order: one that fits
is content and waits; one that does not names victims, by `quotas.core.reclaim`, if it could then really be placed; or it is
left alone. So what is on its way is never ordered twice. How somebody is made to leave is not known here.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from jobs.core.admission import admission_pass
from jobs.core.admission.equivalence import EquivalenceClass
from jobs.core.admission.plans import Placed, Plan, Spot
from jobs.core.gang.types import Gang, Runner
from jobs.core.placement.types import Assignment
from jobs.core.preemption.cost import Loss
from jobs.core.scheduling.scheduler import Scheduler
from quotas.core import admission, reclaim
from quotas.core.ledger import Ledger
from quotas.core.reclaim import Running, Victim

Costs = Callable[[], Mapping[int, Loss]]
"""What stopping each of the runners would cost, by job, where that is known."""


def nothing_known() -> Mapping[int, Loss]:
    return {}


@dataclass(frozen=True, slots=True)
class Eviction:
    """One who has to leave, for whom, where that one goes, and why."""

    runner: Runner
    claimant: Gang
    goes_to: str
    victim: Victim


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A placement of this very cycle that must not stand, since a waiting gang is entitled to what it would hold."""

    placed: Placed
    preemptor: Gang
    goes_to: str


@dataclass(slots=True)
class PreemptionPlan:
    taken: list[Eviction] = field(default_factory=list)
    withdrawn: list[Withdrawal] = field(default_factory=list)
    content: dict[int, list[Runner]] = field(default_factory=dict)
    """Whose room is on its way: job -> those who leave for it already."""
    no_targets: list[int] = field(default_factory=list)
    """Jobs for which nothing could be preempted, although nothing was preempted for any job that asks the same."""
    again: bool = False
    """Whether the next cycle is to come at once, since something was put off."""


def plan(
    scheduler: Scheduler,
    made: Plan,
    runners: Callable[[], Sequence[Runner]],
    now: datetime,
    losses: Costs = nothing_known,
) -> PreemptionPlan:
    """What this cycle placed counts as running. Who else runs, and what stopping each of them would cost, is asked for only
    when somebody has a right to take.

    The scheduler is as before: planning once more gives the same. What it is to remember, `Scheduler.mark_no_targets` is given.
    """
    if scheduler.quota is None or not made.claimants:
        return PreemptionPlan()
    ledger, leaving = scheduler.quota.ledger, list(scheduler.leaving.values())
    with ledger.released([each.charge for each in leaving]), scheduler.places.what_if():
        for runner in leaving:
            scheduler.places.without(runner)
        return _Play(scheduler, ledger, _Runners(runners, losses, made.placed, scheduler.leaving, now), now).run(
            made.claimants
        )


def postpone(scheduler: Scheduler) -> PreemptionPlan:
    """Nobody new: who has a right is looked at in the next cycle, and waits till then for those who leave for it already."""
    content: dict[int, list[Runner]] = {}
    for runner in scheduler.leaving.values():
        if scheduler.line_of(runner.leaves_for) is not None:
            content.setdefault(runner.leaves_for, []).append(runner)
    return PreemptionPlan(content=content, again=True)


def lends(scheduler: Scheduler, made: Plan) -> bool:
    """Whether this cycle placed a gang that a waiting gang may be entitled to displace."""
    if scheduler.quota is None or not made.claimants:
        return False
    leaves = {each.gang.leaf for each in made.placed if each.gang.asks_quota and each.gang.preemptible}
    return any(reclaim.may_lose(scheduler.quota.ledger, leaf) for leaf in leaves)


class _Runners:
    """What runs, loaded when first looked at, and what this cycle has placed."""

    def __init__(
        self,
        load: Callable[[], Sequence[Runner]],
        losses: Costs,
        placed: Iterable[Placed],
        leaving: Container[int],
        now: datetime,
    ) -> None:
        self._load, self._losses, self._leaving = load, losses, leaving
        self.unstarted = {str(each.gang.job_id): each for each in placed if each.gang.asks_quota}
        self._placed = {key: _as_runner(each, now) for key, each in self.unstarted.items()}

    @cached_property
    def by_key(self) -> dict[str, Runner]:
        staying = (runner for runner in self._load() if runner.job_id not in self._leaving)
        return {str(runner.job_id): runner for runner in staying} | self._placed

    @cached_property
    def running(self) -> dict[str, Running]:
        runners, losses = self.by_key, self._losses()
        return {
            key: _running(key, each, losses.get(each.job_id, Loss()), started=key not in self.unstarted)
            for key, each in runners.items()
        }

    def __iter__(self) -> Iterator[Running]:
        return iter(self.running.values())

    def pop(self, key: str) -> Runner:
        del self.running[key]
        return self.by_key.pop(key)


def _as_runner(placed: Placed, now: datetime) -> Runner:
    gang, held = placed.gang, tuple(promise.key for promise in placed.spot.promises(placed.gang))
    made_by = (gang.charge, gang.priority, now, placed.spot.cluster, gang.total)
    return Runner(gang.job_id, gang.name, *made_by, other_promises=held)


class _Play:
    def __init__(self, scheduler: Scheduler, ledger: Ledger, runners: _Runners, now: datetime) -> None:
        self.scheduler, self.places, self.ledger = scheduler, scheduler.places, ledger
        self.runners, self.now = runners, now
        self.made = PreemptionPlan()
        self.leaving = list(scheduler.leaving.values())
        self.searches = 0
        self._stuck: set[EquivalenceClass] = set()
        """Whose members get nothing as things stand."""
        self._served: set[EquivalenceClass] = set()
        """Some member has its room: it is on its way, or somebody is preempted for it."""
        self._without_targets: dict[EquivalenceClass, int] = {}
        """For one member of each nothing could be preempted."""
        self._promised: dict[EquivalenceClass, bool] = {}
        """Whether members stay within min as things stand."""

    def run(self, claimants: Sequence[Gang]) -> PreemptionPlan:
        for gang in self._in_order(claimants):
            line = self.scheduler.line_of(gang.job_id)
            if line is None or line in self._stuck:
                continue
            self._stuck.add(line)
            if self._content(gang):
                self._served.add(line)
                self.made.content[gang.job_id] = [r for r in self.leaving if r.leaves_for == gang.job_id]
            elif self.searches < self.scheduler.settings.max_preemption_searches and not self.scheduler.has_no_targets(
                gang.job_id
            ):
                self.searches += 1
                self._search(gang, line)
        self.made.no_targets = [job for line, job in self._without_targets.items() if line not in self._served]
        return self.made

    def _in_order(self, claimants: Sequence[Gang]) -> Iterator[Gang]:
        """Those whose room is on its way, those who stay within min when it is their turn, the others.

        What was freed for somebody's min would else be lent to others, and somebody else have to leave for it.
        """
        awaited = {runner.leaves_for for runner in self.leaving}
        places = {gang.job_id: self.scheduler.unit(gang.job_id).place for gang in claimants}
        others = sorted(claimants, key=lambda gang: (gang.job_id not in awaited, places[gang.job_id]))
        while others and others[0].job_id in awaited:
            yield others.pop(0)
        later = []
        for gang in others:
            if self._is_promised(gang):
                yield gang
            else:
                later.append(gang)
        yield from later

    def _is_promised(self, gang: Gang) -> bool:
        line = self.scheduler.line_of(gang.job_id)
        if line is not None and line not in self._promised:
            self._promised[line] = admission.is_promised(self.ledger, gang.charge)
        return line is not None and self._promised[line]

    def _content(self, gang: Gang) -> bool:
        """Whether it fits once those have left who leave already; then it has its place there."""
        if admission_pass.ask(self.ledger, self.scheduler.unit(gang.job_id)) is not None:
            return False
        found = self._find(gang)
        return found is not None and self._settle(gang, found)

    def _settle(self, gang: Gang, found: Assignment) -> bool:
        self.ledger.charge(gang.charge)
        self.places.hold(Spot(0, found, ()).promise(("comes", gang.job_id)))
        self._stuck.clear()
        self._promised.clear()
        return True

    def _search(self, gang: Gang, line: EquivalenceClass) -> None:
        def can_place(keys: frozenset[str]) -> bool:
            return self._find_without(gang, keys) is not None

        found = reclaim.plan(self.ledger, self.scheduler.unit(gang.job_id), self.runners, can_place)
        keys = frozenset(victim.key for victim in found.victims) if found else frozenset()
        place = self._find_without(gang, keys) if found else None
        if found is None or place is None:
            self._without_targets[line] = gang.job_id
            return
        self._served.add(line)
        for victim in found.victims:
            runner = self.runners.pop(victim.key)
            self.ledger.release(runner.charge)
            self.places.without(runner)
            if (placed := self.runners.unstarted.pop(victim.key, None)) is not None:
                self.made.withdrawn.append(Withdrawal(placed, gang, place.cluster))
            else:
                self.made.taken.append(Eviction(runner, gang, place.cluster, victim))
        self._settle(gang, place)

    def _find(self, gang: Gang) -> Assignment | None:
        """Where the pass would place it: on nodes kept for a big gang only if it comes before that one."""
        line = self.scheduler.line_of(gang.job_id)
        if line is None:
            return None
        found = self.places.find(line.key[1], gang, line.only, self.now)
        if found is None and self.scheduler.comes_before_kept(gang):
            with self.places.without_reservation():
                found = self.places.find(("beside", line.key[1]), gang, line.only, self.now)
        return found

    def _find_without(self, gang: Gang, keys: frozenset[str]) -> Assignment | None:
        gone = [self.runners.by_key[key] for key in sorted(keys)]
        held = [(runner, self.places.without(runner)) for runner in gone]
        found = self._find(gang)
        for runner, promises in held:
            self.places.back(runner, promises)
        return found


def _running(key: str, runner: Runner, loss: Loss, *, started: bool) -> Running:
    return Running(key, runner.charge, runner.priority, runner.started_at, loss.elastic, loss.checkpointed, started)
