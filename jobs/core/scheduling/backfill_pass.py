"""The reservation for one big gang within the cycle: for which gang, and which others may run on its nodes meanwhile."""

from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from heapq import merge

from jobs.core.admission import admission_pass
from jobs.core.admission.equivalence import EquivalenceClass
from jobs.core.admission.guarding import Attempt
from jobs.core.admission.placement_cache import PlacementCache, Reservation
from jobs.core.admission.plans import Placement
from jobs.core.admission.snapshot import Quota
from jobs.core.gang.types import Gang
from jobs.core.scheduling import backfill_reservation
from jobs.core.scheduling.backfill_reservation import Runs
from jobs.core.scheduling.waiting import Waiting
from jobs.core.settings import CycleSettings
from quotas.core.accounts.ledger import Ledger
from quotas.core.queues import recent_use

_MAX_RESERVED_FOR = 20
"""How many big gangs are considered for one that nodes can be reserved for."""
_MAX_ALIKE = 20


class BackfillPass:
    def __init__(self, waiting: Waiting, places: PlacementCache, settings: CycleSettings, attempt: Attempt) -> None:
        self._waiting, self._places, self._settings, self._attempt = waiting, places, settings, attempt
        self._runs = Runs()
        """Running gangs and run times, loaded when a big gang has waited long enough."""

    def reserve(self, now: datetime, load_runs: Callable[[], Runs]) -> None:
        """Reserves nodes for one big gang that has waited long and lacks only a place: the first by the quota's order."""
        self._runs, reservation = Runs(), None
        starving = self._starving(now)
        if starving:
            self._runs = load_runs()
            starving = self._in_fair_order(starving, now)
        for gang in starving[:_MAX_RESERVED_FOR]:
            planned = self._attempt("reserve", gang.job_id, partial(self._plan, gang, now))
            reservation = planned[0] if planned else None
            if reservation is not None:
                break
        self._places.set_reservation(reservation)

    def _plan(self, gang: Gang, now: datetime) -> Reservation | None:
        only = self._waiting.clusters(gang.leaf)
        return backfill_reservation.plan_reservation(self._places, gang, only, self._runs, now, self._settings)

    def candidates(self, now: datetime, most: int) -> list[int]:
        """Jobs that fit nowhere else and may use the reserved nodes, or may once others are placed before the big gang.

        They are offered in the quota's order with all others: what they are promised must not be lent to the big gang first.
        """
        reservation, quota, trust_s = self._places.reservation, self._waiting.quota, self._settings.estimate_trust_s
        if reservation is None:
            return []
        gang, at, runs = self._waiting.gang, now.timestamp(), self._runs
        infeasible = [group for group in self._waiting.classes.by_key.values() if group.infeasible]
        return [
            job
            for group in infeasible
            if group.members[0][1] != reservation.gang.job_id
            for job in self._waiting.heads(group, most)
            if backfill_reservation.might_use(reservation, gang(job), runs, at, quota, trust_s)
        ]

    def find(self, group: EquivalenceClass, gang: Gang, now: datetime) -> Placement | None:
        """A placement on the reserved nodes, for a gang that may use them."""
        reservation = self._places.reservation
        if reservation is None:
            return None
        trust_s = self._settings.estimate_trust_s
        if not backfill_reservation.may_use(
            reservation, gang, self._runs, now.timestamp(), self._waiting.quota, trust_s
        ):
            return None
        return self._places.find_backfill(group.shape, gang, group.only, now)

    def comes_before(self, gang: Gang) -> bool:
        """Whether the gang may take the reserved nodes: by the quota's order, or because running gangs are preempted for it."""
        reservation = self._places.reservation
        if reservation is None or gang.job_id in self._waiting.nominees or reservation.gang.job_id == gang.job_id:
            return reservation is not None
        return backfill_reservation.is_promised_before(reservation, gang, self._waiting.quota)

    def _starving(self, now: datetime) -> list[Gang]:
        """Big gangs that have waited long and that the quota admits: the first few of each leaf, in its order."""
        waiting, classes = self._waiting, self._waiting.classes
        big = backfill_reservation.bigness_test(self._places.engine, self._settings.big_gang_nodes)
        jobs = classes.waiting_since(now - timedelta(seconds=self._settings.reservation_patience_s), _MAX_ALIKE, *big)
        ledger, considered = waiting.quota.ledger if waiting.quota else None, Counter[str]()
        starving = []
        for job in jobs:
            gang, group = waiting.gang(job), waiting.class_of(job)
            if gang.division is not None or considered[group.leaf] == _MAX_RESERVED_FOR:
                continue
            considered[group.leaf] += 1
            if job in waiting.nominees or (waiting.blocks(group.leaf) and job != classes.first_of(group.leaf)):
                continue
            if ledger is None or not group.leaf or self._is_admitted(ledger, group, job):
                starving.append(gang)
        return starving

    def _is_admitted(self, ledger: Ledger, group: EquivalenceClass, job: int) -> bool:
        """Whether the quota has room for it. A refusal is remembered until some of it is released."""
        return group.refusal is None and admission_pass.check_quota(ledger, self._waiting.unit(job)) is None

    def _in_fair_order(self, starving: list[Gang], now: datetime) -> list[Gang]:
        """Gangs in order of what their leaf has used lately; gangs under no quota by priority and time."""
        quota, at = self._waiting.quota, now.timestamp()
        if quota is None or len({gang.leaf for gang in starving if gang.asks_quota}) < 2:
            return starving
        by_id = {str(gang.job_id): gang for gang in starving}
        units = [self._waiting.unit(gang.job_id) for gang in starving if gang.asks_quota]
        free = [self._waiting.unit(gang.job_id) for gang in starving if not gang.asks_quota]
        will_use = {key: gang.devices * self._runs.runtime_of(gang) for key, gang in by_id.items()}
        queued = recent_use.in_order(quota.ledger, units, self._use_by_leaf(quota, at), will_use)
        return [by_id[unit.id] for unit in merge(queued, free, key=lambda unit: unit.place)]

    def _use_by_leaf(self, quota: Quota, at: float) -> dict[str, float]:
        if not quota.ledger.tree.shares_over_time:
            return self._runs.use(at)
        by_leaf: dict[str, float] = defaultdict(float)
        for (leaf, _), amount in self._runs.use_by_user(at).items():
            by_leaf[leaf] += amount
        return by_leaf
