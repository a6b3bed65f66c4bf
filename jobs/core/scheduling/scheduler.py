"""The scheduler: keeps the facts, and decides who is next, whether it may, and where it goes; each run as small as the change.

Pure. It is told of every change one by one, and answers like one that was told everything just now: a no is remembered for
all who ask the same, until something is freed that could make it a yes. Quota and placement are decided together: a gang
that the quota would have but no cluster holds is not charged, and one that waits for its quota is told what the clusters say.
"""

from collections.abc import Callable, Hashable, Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice

from jobs.core import reasons
from jobs.core.admission import admission_pass, backfill_policy
from jobs.core.admission.admission_pass import AdmissionPass, unit_of
from jobs.core.admission.equivalence import EquivalenceClass, EquivalenceClasses
from jobs.core.admission.inadmissible import held_back
from jobs.core.admission.nominations import NOMINATED_FOR, Nominations, nominees_of
from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.admission.plans import Placed, Plan, Spot, Waits
from jobs.core.admission.snapshot import Quota, World
from jobs.core.gang.types import Gang, Runner
from jobs.core.reasons import Code, QuotaVerdict, Reason
from jobs.core.scheduling import backfill_reservation
from jobs.core.scheduling.backfill_reservation import Runs, no_runs
from quotas.core.admission import Refused
from quotas.core.fair_share import Behind
from quotas.core.ledger import Charge
from quotas.core.order import Unit
from quotas.core.tree import Attributes, PreemptPolicy, QueuePolicy

AT_ONCE = 250
"""How many are placed by one plan, and how many of a line are looked at for it."""
ALIKE = 20
"""How many of a line may have a place taken back for them in one cycle; the next ones come in the next."""
DRAINED = 20
"""How many big gangs are looked at for one that nodes can be kept for."""
_NO_RULES = Attributes()
_PATIENCE = timedelta(seconds=5)
_TOLD_A_SECOND = 100
"""How old amounts in a reason may be: so many jobs are told new amounts a second, and nobody more often than every 5 s."""


class Scheduler:
    def __init__(self, quota: Quota | None = None, places: PlacementCache | None = None) -> None:
        self.quota = quota
        self.places = places or PlacementCache()
        self.gangs: dict[int, Gang] = {}
        self.charges: dict[int, Charge] = {}
        self.leaving: dict[int, Runner] = {}
        self.left: dict[int, Runner] = {}
        self.withdrawn: dict[int, Runner] = {}
        """Gangs whose placement was withdrawn before anybody wrote it; like `left`, but known to this process alone."""
        self._lines = EquivalenceClasses()
        self._open: dict[EquivalenceClass, None] = {}
        """EquivalenceClasses whose answer is not known, or was yes."""
        self._full: dict[str, dict[EquivalenceClass, None]] = {}
        """EquivalenceClasses that the quota refuses, by the node that says no."""
        self._shut: dict[Hashable, dict[EquivalenceClass, None]] = {}
        """EquivalenceClasses that no cluster holds, by what they ask of clusters."""
        self._held: dict[int, Reason] = {}
        self._blocked: dict[str, None] = {}
        """Leaves of which it is to be told who stands behind whom."""
        self._claimants: set[int] = set()
        self._hopes = 0
        """Moves on when somebody might be found to take back from, where nobody was."""

    @classmethod
    def of(cls, world: World) -> "Scheduler":
        """Told of everything at once. The charges that the ledger has already are not its own to release."""
        made = cls(world.quota, PlacementCache(world.sites))
        made.places.engine.set_failures(world.failures)
        made.places.engine.expect(world.usual)
        made.leaving = {each.job_id: each for each in world.leaving}
        made.left = {each.job_id: each for each in world.left}
        for gang in world.waiting:
            made.put(gang)
        return made

    # as it is told

    def put(self, gang: Gang) -> None:
        """It waits; in place of what was known of it as one who waits."""
        self.drop(gang.job_id)
        self.gangs[gang.job_id] = gang
        why = held_back(gang, self.quota)
        if why is not None:
            self._held[gang.job_id] = why
        else:
            self._stand(gang, unit_of(gang))

    def drop(self, job: int) -> None:
        """It does not wait any more."""
        if self.gangs.pop(job, None) is None:
            return
        self._held.pop(job, None)
        self._left_line(job)

    def charge(self, job: int, charge: Charge) -> None:
        """What its leaf is charged for it, in place of what it was."""
        if self.charges.get(job) == charge or self.quota is None:
            return
        self.release(job)
        self.charges[job] = charge
        self.quota.ledger.charge(charge)

    def release(self, job: int) -> None:
        charge = self.charges.pop(job, None)
        if charge is None or self.quota is None:
            return
        self._hopes += 1
        self.quota.ledger.release(charge)
        for node in self.quota.ledger.tree.to_root(charge.leaf):
            for line in self._full.pop(node.path, {}):
                line.refusal = None
                self._open[line] = None

    # the run

    def run(self, now: datetime, runs: Callable[[], Runs] = no_runs) -> Plan:
        """Who starts now, and where; they count as placed and charged from here on. Who waits, and why, if that is news.

        Who runs is asked for only when a big gang has waited long."""
        plan = Plan(tree_version=self.quota.version if self.quota else 0)
        running = self.reserve_nodes(now, runs)
        self._recall(now)
        patience = max(_PATIENCE, timedelta(seconds=len(self.gangs) / _TOLD_A_SECOND))
        with ExitStack() as supposed:
            if self._claimants:
                supposed.enter_context(self.places.what_if())
            nominations = self._promises(now)
            self._pass(plan, nominations, running, now)
            self._tell(plan, now, patience)
        for placed in plan.placed:
            self._settle(placed)
        plan.claimants = self._who_claims()
        if self._claimants:
            self.forget()
        return plan

    def forget(self) -> None:
        """All answers: everybody is asked anew."""
        self._hopes += 1
        self.places.forget()
        self._full.clear()
        self._shut.clear()
        for line in self._lines.by_key.values():
            line.refusal, line.nowhere = None, False
            self._open[line] = None

    def withdraw(self, placed: Placed, preemptor: Gang, goes_to: str, now: datetime) -> None:
        """Undoes a placement of the last run that is not written: the gang waits again, and its place is the preemptor's."""
        gang = placed.gang
        for promise in placed.spot.promises(gang):
            self.places.release(promise.key)
        self.release(gang.job_id)
        self.put(gang)
        self.withdrawn[gang.job_id] = Runner(
            gang.job_id, gang.name, gang.charge, gang.priority, now, "", gang.total,
            leaves_for=preemptor.job_id, goes_to=goes_to, ordered_at=now, until=now,
        )  # fmt: skip

    def mark_no_targets(self, jobs: Iterable[int]) -> None:
        """Nothing could be preempted for these: not searched for again, nor for any that asks the same, until that may help."""
        for job in jobs:
            self._lines.of[job].hopeless = self._hopes

    def has_no_targets(self, job: int) -> bool:
        return self._lines.of[job].hopeless == self._hopes

    def line_of(self, job: int) -> EquivalenceClass | None:
        return self._lines.of.get(job)

    def unit(self, job: int) -> Unit:
        return self._lines.unit[job]

    def _recall(self, now: datetime) -> None:
        """Brings back to the line whose answer may be another one now."""
        self.withdrawn = {
            job: each for job, each in self.withdrawn.items() if each.until and now < each.until + NOMINATED_FOR
        }
        claimants = nominees_of(self.gangs, self.leaving.values(), self._departed(), now)
        if claimants != self._claimants:
            changed, self._claimants = claimants ^ self._claimants, claimants
            for job in changed & self.gangs.keys():
                self.put(self.gangs[job])
        if claimants:
            self.forget()
        if self.places.has_new_capacity:
            self._hopes += 1
        for shape in self.places.requeued(now):
            for line in self._shut.pop(shape, {}):
                line.nowhere = False
                self._open[line] = None

    def reserve_nodes(self, now: datetime, runs: Callable[[], Runs]) -> Runs:
        """Keeps nodes for the big gang that has waited longest, of those that only lack a place."""
        running, before, kept = Runs(), self.places.kept, None
        for gang in self._starving(now):
            running = running if running.by_job else runs()
            kept = backfill_reservation.plan(self.places, gang, self._only(gang), running, now)
            if kept is not None:
                break
        self.places.keep(kept)
        changed = {each.gang.job_id for each in (before, kept) if each}
        if before is None or kept is None or before.gang.job_id != kept.gang.job_id:
            for job in changed & self.gangs.keys():
                self.put(self.gangs[job])
        elif before.until != kept.until:
            self._lines.news[self._lines.of[kept.gang.job_id]] = None
        if kept is not None and kept.until <= now:
            line = self._lines.of[kept.gang.job_id]
            self.places.invalidate(line.key[1])
            self._shut.get(line.key[1], {}).pop(line, None)
            line.nowhere = False
            self._open[line] = None
        return running

    def _starving(self, now: datetime) -> Iterable[Gang]:
        """Big gangs that have waited long and that the quota would have, by their place; the first ones."""
        big = backfill_reservation.bigness(self.places.engine)
        long = self._lines.long(now - timedelta(seconds=backfill_policy.PATIENCE), ALIKE, *big)
        for job in islice((job for job in long if self.gangs[job].division is None), DRAINED):
            gang, line = self.gangs[job], self._lines.of[job]
            if job in self._claimants or (self._blocks(line.leaf) and job != self._lines.first(line.leaf)):
                continue
            if (
                not gang.asks_quota
                or self.quota is None
                or admission_pass.ask(self.quota.ledger, self._lines.unit[job]) is None
            ):
                yield gang

    def _promises(self, now: datetime) -> Nominations:
        claimants = {job: self.gangs[job] for job in self._claimants}
        return Nominations(claimants, self.leaving.values(), self._departed(), self.quota, self.places, now)

    def _departed(self) -> list[Runner]:
        return [*self.left.values(), *self.withdrawn.values()]

    def _pass(self, plan: Plan, nominations: Nominations, runs: Runs, now: datetime) -> None:
        for line in list(self._open):
            self._ask(line, nominations, now)
        jobs = [job for leaf in self._open_leaves() for job in self._feed(leaf)]
        jobs += [*self._feed(""), *self._backfill_candidates(runs, now)]
        asking = [self._lines.unit[job] for job in jobs if self._lines.of[job].leaf]
        free = [self._lines.unit[job] for job in jobs if not self._lines.of[job].leaf]
        through = AdmissionPass(self.quota.ledger if self.quota else None, asking, free)
        while len(plan.placed) < AT_ONCE and (unit := through.next()) is not None:  # 1. who is next
            job = int(unit.id)
            gang, line = self.gangs[job], self._lines.of[job]
            no = through.ask() or nominations.check(unit, gang)  # 2. may it
            if no is not None:
                if not line.nowhere:
                    self._refuse(line, no)
                through.refused(no)
                continue
            nominations.lift_own_reservation(gang)
            spot = self._spot(line, gang, runs, now)  # 3. where
            if spot is None:
                nominations.restore_own_reservation(gang)
                through.passed()
                continue
            through.admitted()  # 4. write it down: the next one sees it
            self._place(gang, spot, plan, nominations)
        for job, no in through.refusals():
            if (waiting := self._lines.of.get(job)) is not None and not waiting.refused:
                self._refuse(waiting, no)
        plan.more |= any(not line.refused for line in self._open if line.members and not self._is_blocked(line))

    def _spot(self, line: EquivalenceClass, gang: Gang, runs: Runs, now: datetime) -> Spot | None:
        """The best place; on nodes that are kept for a big gang only where no other is left, and only for one that may."""
        if not line.nowhere:
            with self._turn_of(gang.job_id):
                spot = self.places.spot(line.key[1], gang, line.only, now)
            if spot is not None:
                return spot
            self._shut_out(line)
        kept = self.places.kept
        if kept is None or not backfill_reservation.may_use(kept, gang, runs, now.timestamp(), self.quota):
            return None
        return self.places.find_backfill(line.key[1], gang, line.only, now)

    def _backfill_candidates(self, runs: Runs, now: datetime) -> list[int]:
        """Jobs that fit nowhere else and may use the nodes kept for a big gang, or may once others are placed before it.

        They take their turn with all others: what they were promised is not to be lent to the big gang before it is theirs.
        """
        kept, at = self.places.kept, now.timestamp()
        if kept is None:
            return []
        parked = [
            each for each in self._lines.by_key.values() if each.nowhere and each.members[0][1] != kept.gang.job_id
        ]
        return [
            job
            for line in parked
            for job in self._heads(line, AT_ONCE)
            if backfill_reservation.might_use(kept, self.gangs[job], runs, at, self.quota)
        ]

    def _heads(self, line: EquivalenceClass, many: int) -> list[int]:
        """The first of a line, so many; where nobody may pass the first of its queue, that one or nobody."""
        if not self._blocks(line.leaf):
            return [job for _, job in line.members[:many]]
        return [job for _, job in line.members[:1] if job == self._lines.first(line.leaf)]

    def _place(self, gang: Gang, spot: Spot, plan: Plan, nominations: Nominations) -> None:
        nominations.placed(gang)
        self.places.hold_all(spot.promises(gang))
        plan.placed.append(Placed(gang, spot))
        self._left_line(gang.job_id)
        if self.places.is_kept_for(gang.job_id):
            self.places.keep(None)
            plan.more = True

    def _ask(self, line: EquivalenceClass, nominations: Nominations, now: datetime) -> None:
        """Whether one of them could start now, if it were next: whoever could not does not hold up its queue."""
        gang = line.sample
        unit = self._lines.unit[line.members[0][1]]
        if gang.asks_quota and self.quota is not None:
            no = admission_pass.ask(self.quota.ledger, unit) or nominations.check(unit, gang)
            if no is not None:
                self._refuse(line, no)
                return
        nominations.lift_own_reservation(gang)
        with self._turn_of(gang.job_id):
            found = self.places.find(line.key[1], gang, line.only, now)
        if found is None:
            self._shut_out(line)
        nominations.restore_own_reservation(gang)

    def _turn_of(self, job: int) -> AbstractContextManager[None]:
        """For one that others leave for nodes are kept before all: it may have those that are kept for a big gang."""
        return self.places.without_reservation() if job in self._claimants else self.places.turn_of(job)

    def comes_before_kept(self, gang: Gang) -> bool:
        """Whether it may have the nodes that are kept for a big gang, by the quota or since others leave for it."""
        kept = self.places.kept
        if kept is None or gang.job_id in self._claimants or kept.gang.job_id == gang.job_id:
            return kept is not None
        return backfill_reservation.is_promised_before(kept, gang, self.quota)

    def _refuse(self, line: EquivalenceClass, no: Refused) -> None:
        line.refusal, line.nowhere = no, False
        self._full.setdefault(no.path, {})[line] = None
        self._close(line)

    def _shut_out(self, line: EquivalenceClass) -> None:
        line.refusal, line.nowhere = None, True
        self._shut.setdefault(line.key[1], {})[line] = None
        self._close(line)

    def _close(self, line: EquivalenceClass) -> None:
        self._open.pop(line, None)
        self._lines.news[line] = None
        if self._blocks(line.leaf):
            self._blocked[line.leaf] = None

    def _open_leaves(self) -> Iterable[str]:
        return dict.fromkeys(line.leaf for line in self._open if line.leaf)

    def _feed(self, leaf: str) -> list[int]:
        """Of a leaf those who may be next: the first of each line, and of those no more than one too many for the quota."""
        lines = [line for line in self._lines.by_leaf.get(leaf, {}).values() if line in self._open]
        if not self._blocks(leaf):
            ledger = self.quota.ledger if self.quota else None
            return [
                job
                for line in lines
                for _, job in line.members[: admission_pass.max_candidates(ledger, line.sample, AT_ONCE)]
            ]
        found: list[int] = []
        for _, job in self._lines.in_order(leaf):
            if self._lines.of[job].refused or len(found) == AT_ONCE:
                break
            found.append(job)
        return found

    def _rules(self, leaf: str) -> Attributes:
        node = self.quota.ledger.tree.by_path.get(leaf) if self.quota and leaf else None
        return node.attributes if node else _NO_RULES

    def _blocks(self, leaf: str) -> bool:
        return self._rules(leaf).queue_policy is QueuePolicy.BLOCK

    def _preempts(self, leaf: str) -> bool:
        return self._rules(leaf).preempt_policy is not PreemptPolicy.NEVER

    def _is_blocked(self, line: EquivalenceClass) -> bool:
        return self._blocks(line.leaf) and self._lines.of[self._lines.first(line.leaf)].refused

    # what is told

    def _tell(self, plan: Plan, now: datetime, patience: timedelta) -> None:
        plan.waits += [Waits(self.gangs[job], reason) for job, reason in self._held.items()]
        self._held.clear()
        for leaf in self._blocked:
            self._tell_behind(leaf, plan, now)
        self._blocked.clear()
        for line in self._lines.to_tell(now, patience):
            if not line.members or not line.refused or self._blocks(line.leaf):
                continue
            reason = self._reason(line, now)
            plan.waits += [Waits(self.gangs[job], reason) for job in line.tell(reason, now, patience)]
            if line.late:
                self._lines.late[line] = None

    def _tell_behind(self, leaf: str, plan: Plan, now: datetime) -> None:
        everybody = [job for _, job in self._lines.in_order(leaf)]
        if not everybody or not (first := self._lines.of[everybody[0]]).refused:
            return
        plan.waits.append(Waits(self.gangs[everybody[0]], self._reason(first, now)))
        blocker = self.gangs[everybody[0]].name
        for position, job in enumerate(everybody[1:], start=2):
            behind = Behind(leaf, position, blocker)
            told = admission_pass.verdict(behind)
            line = self._lines.of[job]
            clusters = self.places.look(line.key[1], line.sample, line.only, now)
            plan.waits.append(Waits(self.gangs[job], Reason(told.code, told.message, clusters, told)))

    def _reason(self, line: EquivalenceClass, now: datetime) -> Reason:
        clusters = self.places.look(line.key[1], line.sample, line.only, now)
        line.crowded = any(verdict.is_crowded for verdict in clusters)
        if line.refusal is not None:
            told = admission_pass.verdict(line.refusal)
            return Reason(told.code, told.message, clusters, told)
        found = reasons.no_cluster_fits(sorted(clusters, key=lambda verdict: verdict.cluster))
        admits = QuotaVerdict(Code.FITS, line.leaf, f"{line.leaf} has room for it") if line.leaf else None
        return replace(found, quota=admits)

    def claimants_after_preemption(self) -> list[Gang]:
        """Who might have a right to a place once those have left who are about to be preempted; empty: the run said so."""
        if self._claimants:
            return []
        self._hopes += 1
        return self._who_claims(preempts=True)

    def _who_claims(self, *, preempts: bool = False) -> list[Gang]:
        """Of everybody whom the quota or the clusters refuse, those who might have a right to a place."""
        lines = [line for line in self._lines.by_key.values() if line.hopeless != self._hopes]
        lines = [line for line in lines if self._may_claim(line, preempts=preempts)]
        found = [job for line in lines for job in self._heads(line, ALIKE)]
        return [self.gangs[job] for job in sorted(found, key=lambda job: self._lines.unit[job].place)]

    def _may_claim(self, line: EquivalenceClass, *, preempts: bool) -> bool:
        if line.refusal is None or self.quota is None:
            return line.nowhere and line.crowded and line.sample.asks_quota
        by_promise = not (preempts or self.leaving or self._claimants or self._preempts(line.leaf))
        return admission_pass.may_preempt(self.quota.ledger, line.sample, line.refusal, by_promise=by_promise)

    # bookkeeping

    def _settle(self, placed: Placed) -> None:
        gang = placed.gang
        for known in (self.gangs, self.leaving, self.left, self.withdrawn):
            known.pop(gang.job_id, None)
        if self._claimants:  # their room was supposed, and what was held beside it with that
            self.places.hold_all(placed.spot.promises(gang))
        if gang.asks_quota and self.quota is not None:
            self.charges[gang.job_id] = gang.charge
            ledger, way = self.quota.ledger, self.quota.ledger.way[gang.leaf]
            if (ledger.held.used[way] > ledger.floor[way]).any() or self._preempts(gang.leaf):
                self._hopes += 1

    def _stand(self, gang: Gang, unit: Unit) -> None:
        only = self._only(gang)
        asked = unit.shape if gang.asks_quota else None
        claim = gang.job_id if gang.job_id in self._claimants or self.places.is_kept_for(gang.job_id) else 0
        barred = (tuple(sorted(gang.excluded.items())), gang.bound_to)
        shape = (gang.api_version, gang.kind, gang.demand, gang.division, id(gang.policy), barred, only, claim)
        line = EquivalenceClass((asked, shape), gang, gang.leaf if gang.asks_quota else "", only)
        self._lines.put(gang.job_id, unit, line)
        line = self._lines.of[gang.job_id]
        if not line.refused:
            self._open[line] = None
        if self._preempts(line.leaf):
            line.hopeless = -1
        if self._blocks(line.leaf):
            self._blocked[line.leaf] = None

    def _left_line(self, job: int) -> None:
        line = self._lines.drop(job)
        if line is None:
            return
        if self._blocks(line.leaf):
            self._blocked[line.leaf] = None
        if not line.members:
            self._open.pop(line, None)
            if line.refusal:
                self._full.get(line.refusal.path, {}).pop(line, None)
            self._shut.get(line.key[1], {}).pop(line, None)

    def _only(self, gang: Gang) -> tuple[str, ...]:
        """The clusters its queue may use; empty: all."""
        return self._rules(gang.leaf).cluster_affinity
