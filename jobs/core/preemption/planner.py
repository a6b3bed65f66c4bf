"""Preemption planning: chooses targets for waiting gangs that are entitled to preempt. Runs after the placement pass.

It works on the state *to come*, in which all gangs that are being evicted are gone. There the waiting gangs are taken in
order: one that fits awaits its victims and needs nothing more; for one that does not, targets are chosen by
`quotas.core.reclaiming.reclaim`, if it could then really be placed; else it is left alone. So no eviction is ordered twice for
the same capacity. A target may be some pods of a gang alone, which then runs on with the others: such pods go before any gang
is evicted whole. Gangs within the min-runtime of their queue are chosen only where there is no other way. Then no target of the
preemptor is evicted before the last of them may be: until then its eviction is deferred, and counts as under way. How a gang
is evicted is not known here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial

from jobs.core.admission import admission_pass
from jobs.core.admission.equivalence import EquivalenceClass
from jobs.core.admission.plans import Placed, Placement, Plan
from jobs.core.gang.types import AdmittedGang, Gang
from jobs.core.placement.types import Assignment
from jobs.core.preemption import making_room, parts
from jobs.core.preemption.cost import Loss
from jobs.core.scheduling.scheduler import Scheduler
from quotas.core.accounts.ledger import Ledger
from quotas.core.queues import admission
from quotas.core.reclaiming import borrowers, reclaim
from quotas.core.reclaiming.candidates import Candidates, Running, job_of, protected_until
from quotas.core.reclaiming.victims import Victim

Costs = Callable[[], Mapping[int, Loss]]
"""What stopping each running gang would cost, by job, where that is known."""


def no_costs() -> Mapping[int, Loss]:
    return {}


@dataclass(frozen=True, slots=True)
class Eviction:
    """A running gang to evict, or pods that it is to give back (``target.fewer``), for which preemptor, where to, and why."""

    target: AdmittedGang
    preemptor: Gang
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
    evictions: list[Eviction] = field(default_factory=list)
    withdrawn: list[Withdrawal] = field(default_factory=list)
    awaiting: dict[int, list[AdmittedGang]] = field(default_factory=dict)
    """Preemptors that fit once their victims are gone: job -> the gangs being evicted for it, at once or deferred."""
    deferred: list[Eviction] = field(default_factory=list)
    """Evictions once the min-runtime of the last target of the same preemptor is over (its ``until``)."""
    no_targets: list[int] = field(default_factory=list)
    """Jobs for which nothing could be preempted, although nothing was preempted for any job that asks the same."""
    again: bool = False
    """Whether the next cycle is to run at once, since planning was postponed."""


def plan_preemption(
    scheduler: Scheduler,
    cycle_plan: Plan,
    runners: Callable[[], Sequence[AdmittedGang]],
    now: datetime,
    losses: Costs = no_costs,
) -> PreemptionPlan:
    """Plan preemption for the preemptors of ``cycle_plan``, whose placements count as running.

    ``runners`` and ``losses`` are loaded only when a gang is entitled to preempt. The scheduler is left as it was: planning
    again gives the same plan. Jobs without targets are recorded by the caller, with `Scheduler.mark_no_targets`.
    A preemptor for which planning raises is left out of the scheduler.
    """
    preemptors = [gang for gang in cycle_plan.preemptors if scheduler.class_of(gang.job_id) is not None]
    if scheduler.quota is None or not preemptors:
        return PreemptionPlan()
    ledger, evicting = scheduler.quota.ledger, scheduler.leaving()
    with ledger.released([gang.charge for gang in evicting]), scheduler.places.what_if():
        for gang in evicting:
            scheduler.places.remove_gang(gang)
        candidates = _Candidates(runners, losses, cycle_plan.placed, evicting, ledger, now)
        return _Planner(scheduler, ledger, candidates, now).run(preemptors)


def postpone_preemption(scheduler: Scheduler) -> PreemptionPlan:
    """Plan no new evictions in this cycle; keep reporting those in progress."""
    awaiting: dict[int, list[AdmittedGang]] = {}
    for gang in (*scheduler.leaving(), *scheduler.deferred.values()):
        if scheduler.class_of(gang.leaves_for) is not None:
            awaiting.setdefault(gang.leaves_for, []).append(gang)
    return PreemptionPlan(awaiting=awaiting, again=True)


def lends_capacity(scheduler: Scheduler, cycle_plan: Plan) -> bool:
    """Whether this cycle placed a gang that a waiting gang may be entitled to displace."""
    if scheduler.quota is None or not cycle_plan.preemptors:
        return False
    leaves = {placed.gang.leaf for placed in cycle_plan.placed if placed.gang.asks_quota and placed.gang.preemptible}
    return any(reclaim.may_lose(scheduler.quota.ledger, leaf) for leaf in leaves)


class _Candidates:
    """Gangs that may be evicted: the running ones, loaded when first needed, and those this cycle has placed."""

    def __init__(
        self,
        load: Callable[[], Sequence[AdmittedGang]],
        losses: Costs,
        placed: Iterable[Placed],
        leaving: Sequence[AdmittedGang],
        ledger: Ledger,
        now: datetime,
    ) -> None:
        self._load, self._losses, self._ledger, self._now = load, losses, ledger, now
        self._evicting = {gang.job_id for gang in leaving if not gang.fewer}
        self._parts = [gang for gang in leaving if gang.fewer and gang.charge.amounts]
        """Pods that this very cycle takes from their gangs: what is loaded has them still."""
        self.unstarted = {str(placement.gang.job_id): placement for placement in placed if placement.gang.asks_quota}
        self._placed = {key: _as_admitted(placement, now) for key, placement in self.unstarted.items()}

    @cached_property
    def by_key(self) -> dict[str, AdmittedGang]:
        staying = (gang for gang in self._load() if gang.job_id not in self._evicting)
        gangs = {str(gang.job_id): gang for gang in staying}
        for part in self._parts:
            if (gang := gangs.get(str(part.job_id))) is not None:
                gangs[str(part.job_id)] = parts.rest_of(gang, dict(part.fewer))
        return gangs | self._placed

    @cached_property
    def running(self) -> Candidates:
        losses = self._losses()
        running = (
            self._running(key, gang, losses.get(gang.job_id, Loss()), started=key not in self.unstarted)
            for key, gang in self.by_key.items()
        )
        return Candidates(self._ledger, running)

    def gone(self, keys: frozenset[str], preemptor: int) -> dict[str, AdmittedGang]:
        """What goes with these keys, by job: the gang, or some of its pods."""
        gangs = {job: self.by_key[job] for job in sorted({job_of(key) for key in keys})}
        return {
            job: gang if job in keys else parts.part_of(gang, parts.fewer_of(job, keys), preemptor)
            for job, gang in gangs.items()
        }

    def take(self, keys: frozenset[str], gone: Mapping[str, AdmittedGang]) -> None:
        """No later search chooses these again."""
        for key in keys:
            self.running.take(key)
        for job, gang in gone.items():
            whole = self.by_key.pop(job)
            if gang.fewer:
                self.by_key[job] = parts.rest_of(whole, dict(gang.fewer))

    def _running(self, key: str, gang: AdmittedGang, loss: Loss, *, started: bool) -> Running:
        kinds, lost_s = (loss.elastic, loss.checkpointed, started), loss.seconds(gang.started_at, self._now)
        until = protected_until(self._ledger.tree, gang.charge.leaf, gang.admitted_at, self._now) if started else None
        surplus = parts.surplus_charges(gang)
        return Running(key, gang.charge, gang.priority, gang.started_at, *kinds, lost_s, until, surplus)


def _as_admitted(placed: Placed, now: datetime) -> AdmittedGang:
    gang, placement = placed.gang, placed.placement
    keys = tuple(hold.key for hold in placement.holds(gang))
    facts = (gang.charge, gang.priority, now, placement.cluster, gang.total)
    return AdmittedGang(gang.job_id, gang.name, *facts, other_hold_keys=keys)


def _by_job(victims: Iterable[Victim]) -> dict[str, Victim]:
    """The first of each job; of one that is stopped whole its own, not those of its pods."""
    victims_by_job: dict[str, Victim] = {}
    for victim in victims:
        job = job_of(victim.key)
        if job not in victims_by_job or victim.key == job:
            victims_by_job[job] = victim
    return victims_by_job


class _Planner:
    def __init__(self, scheduler: Scheduler, ledger: Ledger, candidates: _Candidates, now: datetime) -> None:
        self.scheduler, self.places, self.ledger = scheduler, scheduler.places, ledger
        self.candidates, self.now = candidates, now
        self.preemption = PreemptionPlan()
        self.evicting = scheduler.leaving()
        self.searches, self.steps = 0, making_room.Steps()
        self._stuck: set[EquivalenceClass] = set()
        """Classes whose members get nothing unless a charge or hold changes; cleared by every preemptor that is settled."""
        self._served: set[EquivalenceClass] = set()
        """Classes of which some member will have room: its victims are being evicted, or are chosen in this plan."""
        self._without_targets: dict[EquivalenceClass, int] = {}
        """Classes for whose member no targets were found, with that member's job."""
        self._within_min: dict[EquivalenceClass, bool] = {}
        """Whether members stay within their leaf's min as things stand."""

    def run(self, preemptors: Sequence[Gang]) -> PreemptionPlan:
        for gang in self._in_order(preemptors):
            group = self.scheduler.class_of(gang.job_id)
            if group is None or group in self._stuck:
                continue
            self._stuck.add(group)
            if self.scheduler.attempt("preempt", gang.job_id, partial(self._serve, gang, group)) is None:
                # Charges and holds may be half changed: the next cycle plans without the gang.
                return postpone_preemption(self.scheduler)
        self.preemption.no_targets = [job for group, job in self._without_targets.items() if group not in self._served]
        return self.preemption

    def _serve(self, gang: Gang, group: EquivalenceClass) -> None:
        """Find room in one of the gang's flavors: in any that will have room, before any is preempted in, unless its queue
        states that it waits for the first.
        """
        steps: list[Callable[[Gang, EquivalenceClass], bool]] = [self._awaits, self._preempts]
        waits_for, stops = group.at, self.scheduler.stops_at_flavor(group)
        try:
            for together in [steps] if stops else [[step] for step in steps]:
                for at in range(max(len(group.options), 1)):
                    group.at = at
                    if stops and at > waits_for and self._fits_now(group.of_flavor(gang)):
                        self._without_targets[group] = gang.job_id  # it need not wait: the next run tries this flavor
                        return
                    if any(step(group.of_flavor(gang), group) for step in together):
                        return
        finally:
            group.at = waits_for

    def _awaits(self, gang: Gang, group: EquivalenceClass) -> bool:
        if not self._fits_after_evictions(gang):
            return False
        self._served.add(group)
        self.preemption.awaiting[gang.job_id] = [g for g in self.evicting if g.leaves_for == gang.job_id]
        return True

    def _preempts(self, gang: Gang, group: EquivalenceClass) -> bool:
        if self._is_search_limit_reached() or self.scheduler.has_no_targets(gang.job_id):
            return False
        self.searches += 1
        return self._search(gang, group)

    def _is_search_limit_reached(self) -> bool:
        return self.searches >= self.scheduler.settings.max_preemption_searches

    def _in_order(self, preemptors: Sequence[Gang]) -> Iterator[Gang]:
        """First the preemptors whose victims are being evicted, then those within min when their turn comes, then the others.

        Otherwise capacity freed for a gang within min would go to one that borrows, and another gang be evicted for it.
        """
        awaited = {gang.leaves_for for gang in self.evicting} | self.scheduler.deferred_preemptors()
        places = {gang.job_id: self.scheduler.unit(gang.job_id).place for gang in preemptors}
        others = sorted(preemptors, key=lambda gang: (gang.job_id not in awaited, places[gang.job_id]))
        while others and others[0].job_id in awaited:
            yield others.pop(0)
        later = []
        for gang in others:
            if self._is_within_min(gang) and not self._has_claims_alone(gang):
                yield gang
            else:
                later.append(gang)
        yield from self._in_order_of_shares(later)

    def _has_claims_alone(self, gang: Gang) -> bool:
        """Whether it has a right against borrowers, and nothing that it asks for is promised to anybody."""
        asked = self.ledger.vector(gang.charge.amounts)
        return self.scheduler.may_claim(gang) and not (self.ledger.promised & (asked > 0)).any()

    def _in_order_of_shares(self, gangs: list[Gang]) -> Iterator[Gang]:
        """Those that cannot claim against borrowers as they come; then at each time the one that would borrow least."""
        claims = []
        for gang in gangs:
            if self.scheduler.may_claim(gang):
                claims.append(gang)
            else:
                yield gang
        while claims:
            gang = min(claims, key=lambda gang: borrowers.share_after(self.ledger, gang.charge))  # the first of equals
            claims.remove(gang)
            yield gang

    def _is_within_min(self, gang: Gang) -> bool:
        group = self.scheduler.class_of(gang.job_id)
        if group is not None and group not in self._within_min:
            charges = [option.of(gang).charge for option in group.options] or [gang.charge]
            self._within_min[group] = any(admission.is_promised(self.ledger, charge) for charge in charges)
        return group is not None and self._within_min[group]

    def _fits_after_evictions(self, gang: Gang) -> bool:
        """Whether the gang fits once all victims are gone; then it is charged and holds its nodes there."""
        assignment = self._fits_now(gang)
        return assignment is not None and self._assume_placed(gang, assignment)

    def _fits_now(self, gang: Gang) -> Assignment | None:
        """Where the gang would be placed in the state that is planned for."""
        if admission_pass.check_quota(self.ledger, self.scheduler.unit(gang.job_id)) is not None:
            return None
        return self._find(gang)

    def _assume_placed(self, gang: Gang, assignment: Assignment) -> bool:
        """Charge the gang and hold its nodes, for the rest of this plan. Gangs after it may fit or not fit because of it."""
        self.ledger.charge(gang.charge)
        self.places.hold(Placement(0, assignment, ()).hold(("comes", gang.job_id)))
        self._stuck.clear()
        self._within_min.clear()
        return True

    def _search(self, gang: Gang, group: EquivalenceClass) -> bool:
        """Choose targets for the gang, and record their eviction, or withdrawal if they were placed in this very cycle.

        Returns whether there are any, or none are needed.
        """

        def can_place(keys: frozenset[str]) -> bool:
            return self._find_without(gang, keys) is not None

        had_all_steps = self.steps.untouched
        search = self.ledger, self.scheduler.unit(gang.job_id), lambda: self.candidates.running, can_place
        reclaimed = reclaim.search(*search, partial(self._propose, gang)) or borrowers.search(*search)
        keys = frozenset(victim.key for victim in reclaimed.victims) if reclaimed else frozenset()
        assignment = self._find_without(gang, keys) if reclaimed else None
        if reclaimed is None or assignment is None:
            # The end of a min-runtime is no event: what is protected from claims of borrowers is looked at in every cycle.
            # So is a gang for which too few steps were left.
            looked_at_again = self.scheduler.may_claim(gang) and self.candidates.running.some_protected
            if not looked_at_again and (had_all_steps or not self.steps.spent):
                self._without_targets[group] = gang.job_id
            return False
        self._served.add(group)
        until = reclaimed.protected_until
        gone, why = self.candidates.gone(keys, gang.job_id), _by_job(reclaimed.victims)
        self.candidates.take(keys, gone)
        for job in why:
            target, victim = gone[job], why[job]
            self.ledger.release(target.charge)
            self.places.remove_gang(target)
            if (placed := self.candidates.unstarted.pop(job, None)) is not None:
                self.preemption.withdrawn.append(Withdrawal(placed, gang, assignment.cluster))
            elif until is None:
                self.preemption.evictions.append(Eviction(target, gang, assignment.cluster, victim))
            else:
                self._defer(Eviction(target, gang, assignment.cluster, victim), until)
        return self._assume_placed(gang, assignment)

    def _defer(self, eviction: Eviction, until: datetime) -> None:
        job = eviction.preemptor.job_id
        goes_to, at = eviction.goes_to, self.now
        target = replace(eviction.target, leaves_for=job, goes_to=goes_to, ordered_at=at, until=until, deferred=True)
        self.preemption.deferred.append(replace(eviction, target=target))
        self.preemption.awaiting.setdefault(job, []).append(target)

    def _find(self, gang: Gang) -> Assignment | None:
        """Where the placement pass would place it: on nodes reserved for a big gang only if it comes before that one."""
        group = self.scheduler.class_of(gang.job_id)
        if group is None:
            return None
        assignment = self.places.find(group.shape, gang, group.only, self.now)
        if assignment is None and self.scheduler.comes_before_kept(gang):
            with self.places.without_reservation():
                assignment = self.places.find(("beside", group.shape), gang, group.only, self.now)
        return assignment

    def _propose(self, gang: Gang, prices: Mapping[str, float]) -> frozenset[str]:
        group = self.scheduler.class_of(gang.job_id)
        gone = {key: self.candidates.gone(frozenset({key}), gang.job_id).values() for key in prices}
        leaving = {
            key: each
            for key, gangs in gone.items()
            for each in gangs
            if group is not None and (not group.only or each.cluster in group.only)
        }
        first = self.scheduler.comes_before_kept(gang)
        with self.places.without_reservation() if first else nullcontext():
            return making_room.propose(self.places, gang, leaving, prices, self.now, self.steps)

    def _find_without(self, gang: Gang, keys: frozenset[str]) -> Assignment | None:
        targets = self.candidates.gone(keys, gang.job_id).values()
        removed = [(target, self.places.remove_gang(target)) for target in targets]
        assignment = self._find(gang)
        for target, holds in removed:
            self.places.restore_gang(target, holds)
        return assignment
