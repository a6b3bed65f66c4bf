"""What is spoken for: while jobs leave to make room for a claimant, nobody else may take what they free.

The ledger *to come* has everybody gone who leaves, and the claimants in their place; on the clusters each claimant holds the
nodes where it will go. Whoever is no claimant needs room beside all that: so a victim cannot come back for its place, nor a
third one slip in. It holds until the claimant has its place, whose turn may come after that of others. Only a cycle with
somebody on the way out, or just gone, has any of this.
"""

import copy
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from jobs.core.admission import admission_pass
from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.admission.plans import Spot
from jobs.core.admission.snapshot import Quota
from jobs.core.gang.types import Gang, Promise, Runner
from quotas.core.admission import Refused
from quotas.core.order import Unit


def nominees_of(
    waiting: Mapping[int, Gang], leaving: Iterable[Runner], left: Iterable[Runner], now: datetime, kept_for: timedelta
) -> set[int]:
    """The waiting jobs that running gangs are preempted for, or were within ``kept_for``."""
    left = list(left)
    kept = [each for each in left if each.until and now < each.until + kept_for]
    awaited = {each.leaves_for for each in _standing((*leaving, *kept), left)}
    return {job for job in awaited if job in waiting and waiting[job].asks_quota}


class Nominations:
    """Counts along as the cycle places others and, at last, the claimants themselves. Made while `PlacementCache.what_if`."""

    def __init__(
        self,
        claimants: Mapping[int, Gang],
        leaving: Iterable[Runner],
        left: Iterable[Runner],
        quota: Quota | None,
        places: PlacementCache,
        now: datetime,
    ) -> None:
        self.claimants = set(claimants)
        self._places = places
        self._reserved: dict[int, Promise] = {}
        self._ledger = copy.copy(quota.ledger) if quota and claimants else None
        if self._ledger is None:
            return
        left = list(left)
        going = [runner for runner in _standing(leaving, left) if runner.leaves_for in claimants]
        self._ledger.held = self._ledger.held.copy()
        for runner in going:
            self._ledger.release(runner.charge)
        for gang in claimants.values():
            self._ledger.charge(gang.charge)
        self._reserve(claimants, going, _standing(left, left), now)

    def _reserve(
        self, claimants: Mapping[int, Gang], going: list[Runner], left: Iterable[Runner], now: datetime
    ) -> None:
        """On the nodes where each will be once everybody is gone; where no such nodes are found, in sum."""
        goes_to = {each.leaves_for: each.goes_to for each in (*left, *going) if each.goes_to}
        held = [(runner, self._places.without(runner)) for runner in going]
        for job in sorted(claimants):
            only = (goes_to[job],) if job in goes_to else ()
            with self._places.without_reservation():
                found = self._places.find(("promised", job), claimants[job], only, now)
            promise = Spot(0, found, ()).promise(("promised", job)) if found else None
            if promise is None and job in goes_to:
                promise = Promise(("promised", job), goes_to[job], _rest(claimants[job], going))
            if promise is not None:
                self._reserved[job] = promise
                self._places.hold(promise)
        for runner, promises in held:
            self._places.back(runner, promises)

    def check(self, unit: Unit, gang: Gang) -> Refused | None:
        """The quota's no to one who would take what is promised to another; None when nothing is."""
        if self._ledger is None or gang.job_id in self.claimants or not gang.asks_quota:
            return None
        return admission_pass.ask(self._ledger, unit)

    def lift_own_reservation(self, gang: Gang) -> None:
        """A claimant looks at the world without what is kept for itself."""
        if gang.job_id in self._reserved:
            self._places.release(("promised", gang.job_id))

    def restore_own_reservation(self, gang: Gang) -> None:
        """It found no place yet: the nodes are kept for it still."""
        if gang.job_id in self._reserved:
            self._places.hold(self._reserved[gang.job_id])

    def placed(self, gang: Gang) -> None:
        if gang.job_id in self.claimants:
            self.claimants.discard(gang.job_id)
            self._reserved.pop(gang.job_id, None)
        elif self._ledger is not None and gang.asks_quota:
            self._ledger.charge(gang.charge)


def _standing(orders: Iterable[Runner], left: Iterable[Runner]) -> list[Runner]:
    """Without those whose claimant has had its place since, and had to leave it for another: that promise was kept."""
    since = {each.job_id: each.ordered_at for each in left if each.ordered_at}
    return [
        each for each in orders if not (at := since.get(each.leaves_for)) or not each.ordered_at or at < each.ordered_at
    ]


def _rest(claimant: Gang, going: Iterable[Runner]) -> dict[str, int]:
    """What of its total is not in use by those who leave for it."""
    left = dict(claimant.total)
    for runner in going:
        if runner.leaves_for == claimant.job_id:
            left = {name: max(amount - runner.total.get(name, 0), 0) for name, amount in left.items()}
    return left
