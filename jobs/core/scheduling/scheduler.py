"""The scheduler: keeps the facts between cycles and plans a cycle from them, at a cost that grows with what has changed.

Pure. Each change is passed in by a method of its own, and a plan is the same as if everything had been passed in just now: the
answer of an equivalence class is remembered until something happens that could change it. Quota and placement are decided
together: a gang that the quota admits but no cluster holds is not charged, and one that waits for its quota is reported with
what the clusters say. What is remembered of refusals, reported as reasons and reserved for big gangs is kept by
`RefusalIndex`, `ReasonReporter` and `BackfillPass`.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta

from jobs.core.admission import admission_pass
from jobs.core.admission.admission_pass import AdmissionPass, unit_of
from jobs.core.admission.equivalence import EquivalenceClass
from jobs.core.admission.inadmissible import find_inadmissible_reason
from jobs.core.admission.nominations import Nominations, find_nominees
from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.admission.plans import Placed, Placement, Plan
from jobs.core.admission.snapshot import Quota, Snapshot
from jobs.core.gang.types import AdmittedGang, Gang
from jobs.core.scheduling.backfill_pass import BackfillPass
from jobs.core.scheduling.backfill_reservation import Runs, no_runs
from jobs.core.scheduling.reason_reporter import ReasonReporter
from jobs.core.scheduling.refusal_index import RefusalIndex
from jobs.core.scheduling.waiting import Waiting
from jobs.core.settings import CycleSettings
from quotas.core.ledger import Charge
from quotas.core.order import Unit


class Scheduler:
    def __init__(
        self, quota: Quota | None = None, places: PlacementCache | None = None, settings: CycleSettings | None = None
    ) -> None:
        self.quota = quota
        self.places = places or PlacementCache()
        self.settings = settings or CycleSettings()
        self.charges: dict[int, Charge] = {}
        self.evicting: dict[int, AdmittedGang] = {}
        """Gangs that are being preempted."""
        self.evicted: dict[int, AdmittedGang] = {}
        """Gangs that were preempted and wait again."""
        self.withdrawn: dict[int, AdmittedGang] = {}
        """Gangs whose placement was withdrawn before it was written; like `left`, but known to this process alone."""
        self._waiting = Waiting(quota)
        self.gangs = self._waiting.gangs
        self._classes = self._waiting.classes
        self._refusals = RefusalIndex(self._waiting)
        self._reasons = ReasonReporter(self._waiting, self._refusals, self.places)
        self._backfill = BackfillPass(self._waiting, self.places, self.settings)
        self._preemption_epoch = 0
        """Incremented by every event that could make a failed search for preemption targets succeed."""

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> "Scheduler":
        """A scheduler with everything in the snapshot. It does not release charges that the ledger already had."""
        scheduler = cls(snapshot.quota, PlacementCache(snapshot.sites, snapshot.weights), snapshot.settings)
        scheduler.places.engine.set_failures(snapshot.failures)
        scheduler.places.engine.expect(snapshot.usual)
        scheduler.evicting = {runner.job_id: runner for runner in snapshot.evicting}
        scheduler.evicted = {runner.job_id: runner for runner in snapshot.evicted}
        for gang in snapshot.waiting:
            scheduler.put(gang)
        return scheduler

    # inputs

    def put(self, gang: Gang) -> None:
        """Add a waiting gang, or replace the one with the same job."""
        self.drop(gang.job_id)
        self.gangs[gang.job_id] = gang
        reason = find_inadmissible_reason(gang, self.quota)
        if reason is not None:
            self._reasons.inadmissible[gang.job_id] = reason
        else:
            self._enqueue(gang, unit_of(gang))

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
        charge = self.charges.pop(job, None)
        if charge is None or self.quota is None:
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
        self.put(gang)
        self.withdrawn[gang.job_id] = AdmittedGang(
            gang.job_id, gang.name, gang.charge, gang.priority, now, "", gang.total,
            leaves_for=preemptor.job_id, goes_to=goes_to, ordered_at=now, until=now,
        )  # fmt: skip

    def mark_no_targets(self, jobs: Iterable[int]) -> None:
        """No preemption targets exist for the classes of these jobs; none are searched for until the epoch changes."""
        for job in jobs:
            self._classes.by_job[job].no_targets_since = self._preemption_epoch

    # queries

    def has_no_targets(self, job: int) -> bool:
        return self._classes.by_job[job].no_targets_since == self._preemption_epoch

    def class_of(self, job: int) -> EquivalenceClass | None:
        return self._classes.by_job.get(job)

    def unit(self, job: int) -> Unit:
        return self._classes.units[job]

    def is_full(self, plan: Plan) -> bool:
        """Whether a cycle places no more than the plan does."""
        return len(plan.placed) >= self.settings.max_placed

    def comes_before_kept(self, gang: Gang) -> bool:
        """Whether the gang may have the nodes that are reserved for a big gang, by the quota or as a nominee."""
        return self._backfill.comes_before(gang)

    # the run

    def run(self, now: datetime, runs: Callable[[], Runs] = no_runs) -> Plan:
        """Run a cycle: the gangs that start now, which count as charged and held from now on, and the new reasons.

        ``runs`` is called only when a big gang has waited long.
        """
        plan = Plan(tree_version=self.quota.version if self.quota else 0)

        # 1. Reserve nodes for a big gang that has waited long: all others are placed around them.
        self.reserve_nodes(now, runs)

        # 2. Reopen the classes whose answer may have changed. Nominees first: each becomes a class of its own.
        self._renew_nominees(now)
        self._requeue()
        self._refusals.shapes_requeued(self.places.requeued(now))

        # 3. Set aside what running gangs are being preempted for, before any other gang is offered capacity.
        with self.places.what_if() if self._waiting.nominees else nullcontext():
            nominations = self._nominations(now)

            # 4. Offer the gangs one by one in fair order, each seeing what the ones before it took.
            self._probe_undecided(nominations, now)
            self._place_in_order(plan, nominations, now)

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
            self.places.invalidate(group.key[1])
            self._refusals.reopen(group)

    def _renew_nominees(self, now: datetime) -> None:
        kept_for = timedelta(seconds=self.settings.nomination_s)
        self.withdrawn = {
            job: runner for job, runner in self.withdrawn.items() if runner.until and now < runner.until + kept_for
        }
        nominees = find_nominees(self.gangs, self.evicting.values(), self._departed(), now, kept_for)
        changed = nominees ^ self._waiting.nominees
        self._waiting.nominees = nominees
        for job in changed & self.gangs.keys():
            self.put(self.gangs[job])

    def _requeue(self) -> None:
        if self._waiting.nominees:
            self.invalidate_all()
        if self.places.has_new_capacity:
            self._preemption_epoch += 1

    def _nominations(self, now: datetime) -> Nominations:
        nominees = {job: self.gangs[job] for job in self._waiting.nominees}
        return Nominations(nominees, self.evicting.values(), self._departed(), self.quota, self.places, now)

    def _departed(self) -> list[AdmittedGang]:
        return [*self.evicted.values(), *self.withdrawn.values()]

    def _probe_undecided(self, nominations: Nominations, now: datetime) -> None:
        """Refuses classes of which no member could start even if it were first, so that they hold up nothing."""
        for group in list(self._refusals.undecided):
            gang, unit = group.sample, self._classes.units[group.members[0][1]]
            if gang.asks_quota and self.quota is not None:
                refusal = admission_pass.check_quota(self.quota.ledger, unit) or nominations.check(unit, gang)
                if refusal is not None:
                    self._refusals.refuse(group, refusal)
                    continue
            nominations.lift_own_reservation(gang)
            with self._on_reserved_nodes(gang.job_id):
                assignment = self.places.find(group.key[1], gang, group.only, now)
            if assignment is None:
                self._refusals.mark_infeasible(group)
            nominations.restore_own_reservation(gang)

    def _place_in_order(self, plan: Plan, nominations: Nominations, now: datetime) -> None:
        jobs = [*self._offered(), *self._backfill.candidates(now, self.settings.max_placed)]
        asking = [self._classes.units[job] for job in jobs if self._classes.by_job[job].leaf]
        free = [self._classes.units[job] for job in jobs if not self._classes.by_job[job].leaf]
        admission = AdmissionPass(self.quota.ledger if self.quota else None, asking, free)
        while not self.is_full(plan) and (unit := admission.next()) is not None:
            gang, group = self.gangs[int(unit.id)], self._classes.by_job[int(unit.id)]
            refusal = admission.check_quota() or nominations.check(unit, gang)
            if refusal is not None:
                if not group.infeasible:
                    self._refusals.refuse(group, refusal)
                admission.refused(refusal)
                continue
            nominations.lift_own_reservation(gang)
            placement = self._find(group, gang, now)
            if placement is None:
                nominations.restore_own_reservation(gang)
                admission.passed(self._passed_alike(group))
                continue
            admission.admitted()  # charged before the next one is offered
            self._place(gang, placement, plan, nominations)
        for job, refusal in admission.refusals():
            if (group_ := self._classes.by_job.get(job)) is not None and not group_.refused:
                self._refusals.refuse(group_, refusal)
        left = [group for group in self._refusals.undecided if group.members and not group.refused]
        plan.more |= any(not self._refusals.is_held_up(group) for group in left)

    def _passed_alike(self, group: EquivalenceClass) -> list[int]:
        """The jobs on offer that fit nowhere because one of their class does not; none while nodes are reserved, which each may
        use or not by its own run time and its place in the quota's order.
        """
        return [] if self.places.reservation else [job for _, job in group.members[: self.settings.max_placed]]

    def _find(self, group: EquivalenceClass, gang: Gang, now: datetime) -> Placement | None:
        """The best placement; on nodes reserved for a big gang only where there is no other, for a gang that may use them."""
        if not group.infeasible:
            with self._on_reserved_nodes(gang.job_id):
                placement = self.places.find_with_verdicts(group.key[1], gang, group.only, now)
            if placement is not None:
                return placement
            self._refusals.mark_infeasible(group)
        return self._backfill.find(group, gang, now)

    def _place(self, gang: Gang, placement: Placement, plan: Plan, nominations: Nominations) -> None:
        nominations.placed(gang)
        self.places.hold_all(placement.holds(gang))
        plan.placed.append(Placed(gang, placement))
        self._dequeue(gang.job_id)
        if self.places.is_reserved_for(gang.job_id):
            self.places.set_reservation(None)
            plan.more = True  # nodes may be reserved for the next big gang

    def _on_reserved_nodes(self, job: int) -> AbstractContextManager[None]:
        """A nominee comes before the big gang that nodes are reserved for."""
        return (
            self.places.without_reservation() if job in self._waiting.nominees else self.places.on_own_reservation(job)
        )

    def _offered(self) -> Iterator[int]:
        """Jobs of every queue to consider: of each class as many as the quota may admit, and one more to be refused."""
        for leaf in [*dict.fromkeys(group.leaf for group in self._refusals.undecided if group.leaf), ""]:
            yield from self._offered_of(leaf)

    def _offered_of(self, leaf: str) -> list[int]:
        if not self._waiting.blocks(leaf):
            groups = [g for g in self._classes.by_leaf.get(leaf, {}).values() if g in self._refusals.undecided]
            ledger = self.quota.ledger if self.quota else None
            most = self.settings.max_placed
            return [
                job
                for group in groups
                for _, job in group.members[: admission_pass.max_candidates(ledger, group.sample, most)]
            ]
        jobs: list[int] = []
        for _, job in self._classes.in_order(leaf):
            if self._classes.by_job[job].refused or len(jobs) == self.settings.max_placed:
                break
            jobs.append(job)
        return jobs

    # preemption

    def _preemption_candidates(self) -> list[Gang]:
        """Refused gangs that may be entitled to what others have, and for which targets were not sought in vain already."""
        groups = [
            group
            for group in self._classes.by_key.values()
            if group.no_targets_since != self._preemption_epoch and self._may_preempt(group)
        ]
        alike = self.settings.max_alike_preemptors
        return self._waiting.gangs_of(job for group in groups for job in self._waiting.heads(group, alike))

    def _may_preempt(self, group: EquivalenceClass) -> bool:
        if group.refusal is None or self.quota is None:
            return group.infeasible and group.preemption_may_help and group.sample.asks_quota
        evictions = self.evicting or self._waiting.nominees
        within_min_only = not (evictions or self._waiting.preempts_by_priority(group.leaf))
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

    def _enqueue(self, gang: Gang, unit: Unit) -> None:
        only = self._waiting.clusters(gang.leaf)
        quota_shape = unit.shape if gang.asks_quota else None
        is_own_class = gang.job_id in self._waiting.nominees or self.places.is_reserved_for(gang.job_id)
        own = gang.job_id if is_own_class else 0
        barred = (tuple(sorted(gang.excluded.items())), gang.bound_to)
        shape = (gang.api_version, gang.kind, gang.demand, gang.division, id(gang.policy), barred, only, own)
        group = EquivalenceClass((quota_shape, shape), gang, gang.leaf if gang.asks_quota else "", only)
        self._classes.add(gang.job_id, unit, group)
        group = self._classes.by_job[gang.job_id]
        self._refusals.added(group)
        if self._waiting.preempts_by_priority(group.leaf):
            group.no_targets_since = -1

    def _dequeue(self, job: int) -> None:
        if (group := self._classes.remove(job)) is not None:
            self._refusals.removed(group)
