"""The scheduler: keeps the facts between cycles and plans a cycle from them, at a cost that grows with what has changed.

Pure. Each change is passed in by a method of its own, and a plan is the same as if everything had been passed in just now: the
answer of an equivalence class is remembered until something happens that could change it. Quota and placement are decided
together: a gang that the quota admits but no cluster holds is not charged, and one that waits for its quota is reported with
what the clusters say. What is remembered of refusals, reported as reasons and reserved for big gangs is kept by
`RefusalIndex`, `ReasonReporter` and `BackfillPass`.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from jobs.core.admission import admission_pass
from jobs.core.admission.admission_pass import AdmissionPass, unit_of
from jobs.core.admission.equivalence import EquivalenceClass
from jobs.core.admission.guarding import Failure, Guard, unguarded
from jobs.core.admission.inadmissible import find_inadmissible_reason
from jobs.core.admission.nominations import Nominations, find_nominees
from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.admission.plans import Placed, Placement, Plan
from jobs.core.admission.snapshot import Quota, Snapshot
from jobs.core.admission.window_guard import Ends, WindowGuard, no_ends
from jobs.core.gang import flavors
from jobs.core.gang.types import AdmittedGang, Gang
from jobs.core.scheduling.backfill_pass import BackfillPass
from jobs.core.scheduling.backfill_reservation import Runs, no_runs
from jobs.core.scheduling.flavor_choice import set_to_flavor_of
from jobs.core.scheduling.offering import Offering
from jobs.core.scheduling.reason_reporter import ReasonReporter
from jobs.core.scheduling.refusal_index import RefusalIndex
from jobs.core.scheduling.use_over_time import UseOverTime
from jobs.core.scheduling.waiting import Waiting
from jobs.core.settings import CycleSettings
from quotas.core.accounts.ledger import Charge
from quotas.core.accounts.queue_use import QueueUse
from quotas.core.queues.admission import BeforeWindow, Refused, is_promised
from quotas.core.queues.order import Unit

T = TypeVar("T")


class Scheduler:
    def __init__(
        self,
        quota: Quota | None = None,
        places: PlacementCache | None = None,
        settings: CycleSettings | None = None,
        guard: Guard = unguarded,
    ) -> None:
        self.quota = quota
        self._guard = guard
        self.failed: dict[int, str] = {}
        """Jobs whose gang was left out because planning it raised, and what it raised."""
        self.places = places or PlacementCache()
        self.settings = settings or CycleSettings()
        self.charges: dict[int, Charge] = {}
        self.evicting: dict[int, AdmittedGang] = {}
        """Gangs that are being preempted."""
        self.parts: list[AdmittedGang] = []
        """Pods that running gangs give back, until the preemptor has had its time to start."""
        self.deferred: dict[Hashable, AdmittedGang] = {}
        """Gangs that run on until their min-runtime is over, by the last preemption plan. What they free is set aside."""
        self.evicted: dict[int, AdmittedGang] = {}
        """Gangs that were preempted and wait again."""
        self.withdrawn: dict[int, AdmittedGang] = {}
        """Gangs whose placement was withdrawn before it was written; like `left`, but known to this process alone."""
        self._waiting = Waiting(quota)
        self.gangs = self._waiting.gangs
        self._classes = self._waiting.classes
        self._refusals = RefusalIndex(self._waiting)
        self._reasons = ReasonReporter(self._waiting, self._refusals, self.places, self._attempt_for_class)
        self._backfill = BackfillPass(self._waiting, self.places, self.settings, self.attempt)
        self._offering = Offering(self._waiting, self.places, self._refusals, self._backfill)
        self._use = UseOverTime(self._waiting)
        self.charged_before: Mapping[int, Charge] = {}
        """Charges that are in the ledger from the start and are never released; looked at for windows alone."""
        self.ends: Ends = no_ends
        """When charged jobs end at the latest; asked for only where a window lies ahead."""
        self._now: datetime | None = None
        """Of the last run."""
        self._preemption_epoch = 0
        """Incremented by every event that could make a failed search for preemption targets succeed."""
        self._unstarted: set[int] = set()
        """Placed gangs that may be targets, and once they have started are protected by a min-runtime."""

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, guard: Guard = unguarded) -> "Scheduler":
        """A scheduler with everything in the snapshot. It does not release charges that the ledger already had."""
        scheduler = cls(snapshot.quota, PlacementCache(snapshot.sites, snapshot.weights), snapshot.settings, guard)
        scheduler.places.engine.set_failures(snapshot.failures)
        scheduler.places.engine.expect(snapshot.usual)
        scheduler.evicting = {runner.job_id: runner for runner in snapshot.evicting}
        scheduler.evicted = {runner.job_id: runner for runner in snapshot.evicted}
        scheduler.parts = list(snapshot.parts)
        scheduler.charged_before = snapshot.charges
        for gang in snapshot.waiting:
            scheduler.put(gang)
        return scheduler

    # inputs

    def put(self, gang: Gang) -> None:
        """Add a waiting gang, or replace the one with the same job."""
        self.drop(gang.job_id)
        if gang.charged and gang.flavors and self.quota is not None:
            gang = flavors.keeping_its_flavor(self.quota.ledger.tree, gang)
        self.gangs[gang.job_id] = gang
        self.attempt("enqueue", gang.job_id, partial(self._add, gang))

    def _add(self, gang: Gang) -> None:
        reason = find_inadmissible_reason(gang, self.quota)
        if reason is not None:
            self._reasons.inadmissible[gang.job_id] = reason
        else:
            self._enqueue(gang, unit_of(gang))

    def attempt(self, step: str, job: int, action: Callable[[], T]) -> tuple[T] | None:
        """What the action returns; None: it raised, and the gang is left out. Of job 0 nothing is left out."""
        return self._leave_out_failed([job] if job else [], self._guard(step, job, action))

    def _attempt_for_class(self, step: str, group: EquivalenceClass, action: Callable[[], T]) -> tuple[T] | None:
        """As `attempt`, for what is the same for all members of the class."""
        outcome = self._guard(step, group.sample.job_id, action)
        if not isinstance(outcome, Failure):
            return outcome
        return self._leave_out_failed([job for _, job in group.members], outcome)

    def _leave_out_failed(self, jobs: Iterable[int], outcome: tuple[T] | Failure) -> tuple[T] | None:
        if not isinstance(outcome, Failure):
            return outcome
        for job in jobs:
            self.drop(job)
            self.failed[job] = outcome.message
        return None

    def drop(self, job: int) -> None:
        """Remove a gang that no longer waits."""
        if self.gangs.pop(job, None) is None:
            return
        self._reasons.inadmissible.pop(job, None)
        self._dequeue(job)

    def charge(self, job: int, charge: Charge) -> None:
        """Charge the job's leaf for it, in place of an earlier charge."""
        if self.charges.get(job) == charge or self.quota is None:
            return
        self.release(job)
        self.charges[job] = charge
        self.quota.ledger.charge(charge)

    def release(self, job: int) -> None:
        """Release what the job's leaf is charged for it."""
        self.deferred = {key: gang for key, gang in self.deferred.items() if gang.job_id != job}
        if (charge := self.charges.pop(job, None)) is None or self.quota is None:
            return
        self._preemption_epoch += 1
        self.quota.ledger.release(charge)
        self._refusals.quota_released(node.path for node in self.quota.ledger.tree.to_root(charge.leaf))

    def withdraw(self, placed: Placed, preemptor: Gang, goes_to: str, now: datetime) -> None:
        """Undoes a placement of the last run that is not written: the gang waits again, and its place is the preemptor's."""
        gang = placed.gang
        for hold in placed.placement.holds(gang):
            self.places.release(hold.key)
        self.release(gang.job_id)
        self.put(gang.of_no_flavor())
        self.withdrawn[gang.job_id] = AdmittedGang(
            gang.job_id, gang.name, gang.charge, gang.priority, now, "", gang.total,
            leaves_for=preemptor.job_id, goes_to=goes_to, ordered_at=now, until=now,
        )  # fmt: skip

    def defer(self, gangs: Iterable[AdmittedGang]) -> None:
        """Sets aside what these gangs free at the end of their min-runtime, in place of what was deferred before."""
        self.deferred = {gang.leaving_key: gang for gang in gangs}

    def deferred_preemptors(self) -> set[int]:
        """Waiting jobs for which gangs are to be evicted later, unless a more urgent one of their queue is entitled as well."""
        jobs = {gang.leaves_for for gang in self.deferred.values()} & self._classes.by_job.keys()
        return {job for job in jobs if not self._is_outranked(job)}

    def _is_outranked(self, job: int) -> bool:
        group, place = self._classes.by_job[job], self._classes.units[job].place
        return self.quota is not None and any(
            other.members[0][0] < place and is_promised(self.quota.ledger, other.sample.charge)
            for other in self._classes.by_leaf[group.leaf].values()
        )

    def started(self, jobs: Iterable[int]) -> None:
        """Of these the placement is written: a search that failed beside them may succeed now that others go before them."""
        self._preemption_epoch += int(not self._unstarted.isdisjoint(jobs))
        self._unstarted.clear()

    def mark_no_targets(self, jobs: Iterable[int]) -> None:
        """No preemption targets exist for the classes of these jobs; none are searched for until the epoch changes."""
        for job in jobs:
            group = self._classes.by_job[job]
            group.no_targets_since = self._preemption_epoch
            if self._waiting.stops_at_flavor(group):
                group.past_stop_at = self._now
                self._refusals.reopen(group)

    def stopped_in_vain(self, jobs: Iterable[int]) -> list[int]:
        """Of these jobs without preemption targets those that did not try all of their flavors in this cycle."""
        groups = ((job, self._classes.by_job[job]) for job in jobs if job in self._classes.by_job)
        return [job for job, group in groups if self.stops_at_flavor(group)]

    # queries

    def has_no_targets(self, job: int) -> bool:
        return self._classes.by_job[job].no_targets_since == self._preemption_epoch

    def class_of(self, job: int) -> EquivalenceClass | None:
        return self._classes.by_job.get(job)

    def unit(self, job: int) -> Unit:
        return self._classes.unit(job)

    def stops_at_flavor(self, group: EquivalenceClass) -> bool:
        """Whether it waits for reclaim of the flavor it is at, and has not tried those after it in this cycle."""
        return self._waiting.stops_at_flavor(group) and group.past_stop_at != self._now

    def is_full(self, plan: Plan) -> bool:
        """Whether a cycle places no more than the plan does."""
        return len(plan.placed) >= self.settings.max_placed

    def comes_before_kept(self, gang: Gang) -> bool:
        """Whether the gang may have the nodes that are reserved for a big gang, by the quota or as a nominee."""
        return self._backfill.comes_before(gang)

    def before_window(self, gang: Gang) -> BeforeWindow | None:
        """The window in whose way the gang would be if it started now."""
        return self._offering.windows.check(gang)

    def may_claim(self, gang: Gang) -> bool:
        """Whether it may preempt gangs of queues that borrow so that it may borrow."""
        return self._waiting.may_claim(gang)

    # the run

    def run(self, now: datetime, runs: Callable[[], Runs] = no_runs) -> Plan:
        """Run a cycle: the gangs that start now, which count as charged and held from now on, and the new reasons.

        ``runs`` is called only when a big gang has waited long.
        """
        self._now = now
        charges = {**self.charged_before, **self.charges}
        staying = {job: charge for job, charge in charges.items() if job not in self.evicting}
        self._offering.windows = WindowGuard(self.quota, staying, now, self.ends)
        plan = Plan(tree_version=self.quota.version if self.quota else 0)

        # 1. Reserve nodes for a big gang that has waited long: all others are placed around them.
        if self.attempt("reserve", 0, partial(self.reserve_nodes, now, runs)) is None:
            self.places.set_reservation(None)

        # 2. Reopen the classes whose answer may have changed. Nominees first: each becomes a class of its own.
        self._renew_nominees(now)
        self._requeue()
        if (shapes := self.attempt("requeue", 0, partial(self.places.requeued, now))) is None:
            self.invalidate_all()  # which of them raised shows when each is probed
        else:
            self._refusals.shapes_requeued(*shapes)

        # 3. Set aside what running gangs are being preempted for, before any other gang is offered capacity.
        with self.beside_nominees(now) as nominations:
            # 4. Offer the gangs one by one in fair order, each seeing what the ones before it took.
            self._probe_undecided(nominations, now)
            self._place_in_order(plan, nominations, now, self._use.load(runs, now))

            # 5. Report why the others wait, while what is set aside still counts as taken.
            self._reasons.report(plan, now)

        # 6. Keep charges and holds of what was placed, and name the gangs that may be entitled to preempt.
        for placed in plan.placed:
            self._commit(placed)
        plan.preemptors = self._preemption_candidates()
        if self._waiting.nominees:  # their answers held only beside what was set aside
            self.invalidate_all()
        return plan

    def invalidate_all(self) -> None:
        """Discard the cached answers of all classes; the next run computes them again."""
        self._preemption_epoch += 1
        self.places.invalidate_all()
        self._refusals.reopen_all()

    def reserve_nodes(self, now: datetime, runs: Callable[[], Runs]) -> None:
        before = self.places.reservation
        self._backfill.reserve(now, runs)
        reservation = self.places.reservation
        if before is None or reservation is None or before.gang.job_id != reservation.gang.job_id:
            for job in {each.gang.job_id for each in (before, reservation) if each} & self.gangs.keys():
                self.put(self.gangs[job])  # a class of its own while nodes are reserved for it
        elif before.until != reservation.until:
            self._classes.changed[self._classes.by_job[reservation.gang.job_id]] = None
        if reservation is not None and reservation.until <= now:
            group = self._classes.by_job[reservation.gang.job_id]
            for shape in group.shapes:
                self.places.invalidate(shape)
            self._refusals.reopen(group)

    def _renew_nominees(self, now: datetime) -> None:
        kept_for = timedelta(seconds=self.settings.nomination_s)
        self.withdrawn = {job: g for job, g in self.withdrawn.items() if g.until and now < g.until + kept_for}
        nominees = find_nominees(self.gangs, self.leaving(), self._departed(), now, kept_for)
        nominees |= self.deferred_preemptors()
        changed, self._waiting.nominees = nominees ^ self._waiting.nominees, nominees
        for job in changed & self.gangs.keys():
            self.put(self.gangs[job])

    def _requeue(self) -> None:
        if self._waiting.nominees:
            self.invalidate_all()
        if self.places.has_new_capacity:
            self._preemption_epoch += 1

    @contextmanager
    def beside_nominees(self, now: datetime) -> Iterator[Nominations]:
        """What is set aside for nominees counts as taken. With nominees, holds made inside are undone at the end."""
        with self.places.what_if() if self._waiting.nominees else nullcontext():
            deferred = [gang for gang in self.deferred.values() if gang.job_id not in self.evicting]
            known = ([*self.leaving(), *deferred], self._departed(), self.quota, self.places, now)
            for job in self._waiting.nominees & self._classes.by_job.keys():
                victims = [gang for gangs in known[:2] for gang in gangs if gang.leaves_for == job]
                set_to_flavor_of(self._classes.by_job[job], victims)
            nominees = {job: self._waiting.gang(job) for job in self._waiting.nominees & self.gangs.keys()}
            yield Nominations(nominees, *known, self.attempt)

    def leaving(self) -> list[AdmittedGang]:
        """Gangs that are being preempted, and pods that gangs give back and that are there still."""
        return [*self.evicting.values(), *(part for part in self.parts if not part.has_left)]

    def _departed(self) -> list[AdmittedGang]:
        return [*self.evicted.values(), *self.withdrawn.values(), *(part for part in self.parts if part.has_left)]

    def _probe_undecided(self, nominations: Nominations, now: datetime) -> None:
        """Refuses classes of which no member could start even if it were first, so that they hold up nothing."""
        for group in list(self._refusals.undecided):
            probe = partial(self._offering.probe, group, nominations, now, passes=self._passes(group))
            self._attempt_for_class("probe", group, probe)

    def _passes(self, group: EquivalenceClass) -> bool:
        """Whether no targets exist for it, so that it need not stop at a flavor for them."""
        return group.past_stop_at == self._now or group.no_targets_since == self._preemption_epoch

    def _place_in_order(self, plan: Plan, nominations: Nominations, now: datetime, use: QueueUse | None) -> None:
        most = self.settings.max_placed
        jobs = [*self._offering.candidates(most), *self._backfill.candidates(now, most)]
        asking = [self._classes.unit(job) for job in jobs if self._classes.by_job[job].leaf]
        free = [self._classes.unit(job) for job in jobs if not self._classes.by_job[job].leaf]
        admission = AdmissionPass(self.quota.ledger if self.quota else None, asking, free, use)
        while not self.is_full(plan) and (unit := admission.next()) is not None:
            gang, group = self.gangs[int(unit.id)], self._classes.by_job[int(unit.id)]
            offer = partial(self._offering.offer, gang, group, nominations, now, passes=self._passes(group))
            offered = self.attempt("place", gang.job_id, offer)
            if offered is None:
                admission.passed()
            elif self._offering.parks(group, offered[0]):
                admission.passed(self._passed_alike(group))
            elif isinstance(offered[0], Refused):
                if not group.infeasible:
                    self._refusals.refuse(group, offered[0])
                admission.refused(offered[0])
            elif offered[0] is None:
                admission.passed(self._passed_alike(group))
            else:
                gang = group.of_flavor(gang)
                admission.admitted(gang.charge)  # charged before the next one is offered
                self._place(gang, offered[0], plan, nominations)
                self._use.placed(gang, now)
        for job, refusal in admission.refusals():
            group_ = self._classes.by_job.get(job)
            # Of several flavors only one was refused: the next run tries the others.
            if group_ is not None and not group_.refused and len(group_.options) < 2:
                self._refusals.refuse(group_, refusal)
        left = [group for group in self._refusals.undecided if group.members and not group.refused]
        plan.more |= any(not self._refusals.is_held_up(group) for group in left)

    def _passed_alike(self, group: EquivalenceClass) -> list[int]:
        """The jobs on offer that fit nowhere because one of their class does not; none while nodes are reserved, which each may
        use or not by its own run time and its place in the quota's order.
        """
        return [] if self.places.reservation else [job for _, job in group.members[: self.settings.max_placed]]

    def _place(self, gang: Gang, placement: Placement, plan: Plan, nominations: Nominations) -> None:
        nominations.placed(gang)
        self.places.hold_all(placement.holds(gang))
        plan.placed.append(Placed(gang, placement, self._offering.windows.warning(gang)))
        self._offering.windows.placed(gang)
        self._dequeue(gang.job_id)
        if self.places.is_reserved_for(gang.job_id):
            self.places.set_reservation(None)
            plan.more = True  # nodes may be reserved for the next big gang

    # preemption

    def _preemption_candidates(self) -> list[Gang]:
        """Refused gangs that may be entitled to what others have, and for which targets were not sought in vain already."""
        groups = [
            group
            for group in self._classes.by_key.values()
            if group.no_targets_since != self._preemption_epoch
            and self._may_preempt(group)
            and self.before_window(group.sample) is None
        ]
        alike = self.settings.max_alike_preemptors
        return self._waiting.gangs_of(job for group in groups for job in self._waiting.heads(group, alike))

    def _may_preempt(self, group: EquivalenceClass) -> bool:
        if group.refusal is None or self.quota is None:
            return group.infeasible and group.preemption_may_help and group.sample.asks_quota
        evictions = self.leaving() or self._waiting.nominees
        within_min_only = not (evictions or self._waiting.preempts_by_priority(group.leaf))
        within_min_only = within_min_only and not self.may_claim(group.sample)
        return admission_pass.may_preempt(
            self.quota.ledger, group.sample, group.refusal, within_min_only=within_min_only
        )

    # bookkeeping

    def _commit(self, placed: Placed) -> None:
        gang = placed.gang
        for known in (self.gangs, self.evicting, self.evicted, self.withdrawn):
            known.pop(gang.job_id, None)
        if self._waiting.nominees:  # the holds of the run were undone with everything that was set aside
            self.places.hold_all(placed.placement.holds(gang))
        if gang.asks_quota and self.quota is not None:
            self.charges[gang.job_id] = gang.charge
            ledger, path = self.quota.ledger, self.quota.ledger.path_rows[gang.leaf]
            borrows = bool((ledger.held.used[path] > ledger.floor[path]).any())
            if borrows or self._waiting.preempts_by_priority(gang.leaf):
                self._preemption_epoch += 1
                if ledger.tree.by_path[gang.leaf].attributes.min_runtime:
                    self._unstarted.add(gang.job_id)

    def _enqueue(self, gang: Gang, unit: Unit) -> None:
        is_own_class = gang.job_id in self._waiting.nominees or self.places.is_reserved_for(gang.job_id)
        group = self._waiting.new_class(gang, unit, is_own=is_own_class)
        self._classes.add(gang.job_id, unit, group)
        group = self._classes.by_job[gang.job_id]
        self._refusals.added(group)
        if self._waiting.preempts_by_priority(group.leaf):
            group.no_targets_since = -1

    def _dequeue(self, job: int) -> None:
        if (group := self._classes.remove(job)) is not None:
            self._refusals.removed(group)
