"""The reservation for one big gang within the cycle: for which gang, and which others may run on its nodes meanwhile."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import islice

from jobs.core.admission import admission_pass
from jobs.core.admission.equivalence import EquivalenceClass
from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.admission.plans import Placement
from jobs.core.gang.types import Gang
from jobs.core.scheduling import backfill_reservation
from jobs.core.scheduling.backfill_reservation import Runs
from jobs.core.scheduling.waiting import Waiting
from jobs.core.settings import CycleSettings

_MAX_RESERVED_FOR = 20
"""How many big gangs are considered for one that nodes can be reserved for."""
_MAX_ALIKE = 20


class BackfillPass:
    def __init__(self, waiting: Waiting, places: PlacementCache, settings: CycleSettings) -> None:
        self._waiting, self._places, self._settings = waiting, places, settings
        self._runs = Runs()
        """Running gangs and run times, loaded when a big gang has waited long enough."""

    def reserve(self, now: datetime, load_runs: Callable[[], Runs]) -> None:
        """Reserves nodes for the big gang that has waited longest, of those that lack only a place."""
        self._runs, reservation = Runs(), None
        for gang in self._starving(now):
            self._runs = self._runs if self._runs.by_job else load_runs()
            only = self._waiting.clusters(gang.leaf)
            reservation = backfill_reservation.plan(self._places, gang, only, self._runs, now, self._settings)
            if reservation is not None:
                break
        self._places.set_reservation(reservation)

    def candidates(self, now: datetime, most: int) -> list[int]:
        """Jobs that fit nowhere else and may use the reserved nodes, or may once others are placed before the big gang.

        They are offered in the quota's order with all others: what they are promised must not be lent to the big gang first.
        """
        kept, quota, trust_s = self._places.reservation, self._waiting.quota, self._settings.estimate_trust_s
        if kept is None:
            return []
        gangs, at, runs = self._waiting.gangs, now.timestamp(), self._runs
        infeasible = [group for group in self._waiting.classes.by_key.values() if group.infeasible]
        return [
            job
            for group in infeasible
            if group.members[0][1] != kept.gang.job_id
            for job in self._waiting.heads(group, most)
            if backfill_reservation.might_use(kept, gangs[job], runs, at, quota, trust_s)
        ]

    def find(self, group: EquivalenceClass, gang: Gang, now: datetime) -> Placement | None:
        """A placement on the reserved nodes, for a gang that may use them."""
        kept = self._places.reservation
        if kept is None:
            return None
        trust_s = self._settings.estimate_trust_s
        if not backfill_reservation.may_use(kept, gang, self._runs, now.timestamp(), self._waiting.quota, trust_s):
            return None
        return self._places.find_backfill(group.key[1], gang, group.only, now)

    def comes_before(self, gang: Gang) -> bool:
        """Whether it may have the reserved nodes, by the quota or since running gangs are preempted for it."""
        kept = self._places.reservation
        if kept is None or gang.job_id in self._waiting.nominees or kept.gang.job_id == gang.job_id:
            return kept is not None
        return backfill_reservation.is_promised_before(kept, gang, self._waiting.quota)

    def _starving(self, now: datetime) -> Iterable[Gang]:
        """The first big gangs that have waited long and that the quota admits, in their order."""
        waiting, classes = self._waiting, self._waiting.classes
        big = backfill_reservation.bigness_test(self._places.engine, self._settings.big_gang_nodes)
        jobs = classes.waiting_since(now - timedelta(seconds=self._settings.reservation_patience_s), _MAX_ALIKE, *big)
        for job in islice((job for job in jobs if waiting.gangs[job].division is None), _MAX_RESERVED_FOR):
            gang, leaf = waiting.gangs[job], waiting.class_of(job).leaf
            if job in waiting.nominees or (waiting.blocks(leaf) and job != classes.first_of(leaf)):
                continue
            ledger = waiting.quota.ledger if waiting.quota else None
            if ledger is None or not gang.asks_quota or admission_pass.check_quota(ledger, waiting.unit(job)) is None:
                yield gang
