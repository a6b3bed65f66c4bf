"""Capacity set aside for preemptors: what preemption frees goes to the gang it was freed for, and to no other.

A gang for which others are being preempted is a nominee. Two things are set aside for it in every cycle until it is placed:
its charge in a copy of the ledger, in which its victims are released already, and holds on the nodes where it will go. All
other gangs have to fit beside that, so a victim cannot return to its own place, nor a third gang slip in. It lasts until the
nominee is placed, or for a minute (a setting) after its last victim has left: its turn in the queue may come after that of
others. Cycles without evictions, present or recent, set nothing aside.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from jobs.core.admission import admission_pass
from jobs.core.admission.guarding import Attempt
from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.admission.plans import Placement
from jobs.core.admission.snapshot import Quota
from jobs.core.gang.types import AdmittedGang, CapacityHold, Gang
from quotas.core.accounts.ledger import Charge
from quotas.core.queues.admission import Refused
from quotas.core.queues.order import Unit


def find_nominees(
    waiting: Mapping[int, Gang],
    evicting: Iterable[AdmittedGang],
    evicted: Iterable[AdmittedGang],
    now: datetime,
    kept_for: timedelta,
) -> set[int]:
    """The waiting jobs for which others are being preempted, or were preempted within ``kept_for``."""
    evicted = list(evicted)
    recent = [gang for gang in evicted if gang.until and now < gang.until + kept_for]
    nominees = {gang.leaves_for for gang in _unfulfilled((*evicting, *recent), evicted)}
    return {job for job in nominees if job in waiting and waiting[job].asks_quota}


class Nominations:
    """What is set aside in one run of the cycle. Made inside `PlacementCache.what_if`, which undoes its holds."""

    def __init__(
        self,
        nominees: Mapping[int, Gang],
        evicting: Iterable[AdmittedGang],
        evicted: Iterable[AdmittedGang],
        quota: Quota | None,
        places: PlacementCache,
        now: datetime,
        attempt: Attempt,
    ) -> None:
        self.nominees = set(nominees)
        self._attempt = attempt
        self._places = places
        self._reserved: dict[int, CapacityHold] = {}
        self._ledger = copy.copy(quota.ledger) if quota and nominees else None
        if self._ledger is None:
            return
        evicted = list(evicted)
        victims = [gang for gang in _unfulfilled(evicting, evicted) if gang.leaves_for in nominees]
        self._ledger.held = self._ledger.held.copy()
        for victim in victims:
            self._ledger.release(victim.charge)
        for gang in nominees.values():
            self._ledger.charge(gang.charge)
        self._reserve(nominees, victims, _unfulfilled(evicted, evicted), now)

    def _reserve(
        self,
        nominees: Mapping[int, Gang],
        victims: list[AdmittedGang],
        evicted: Iterable[AdmittedGang],
        now: datetime,
    ) -> None:
        """Hold for each nominee the nodes where it fits once all victims are gone; where none are found, the sum alone."""
        goes_to = {gang.leaves_for: gang.goes_to for gang in (*evicted, *victims) if gang.goes_to}
        removed = [(victim, self._places.remove_gang(victim)) for victim in victims]
        for job in sorted(nominees):
            only = (goes_to[job],) if job in goes_to else ()
            hold = next(
                iter(self._attempt("nominate", job, partial(self._hold_for, nominees[job], only, now)) or ()), None
            )
            if hold is None and job in goes_to:
                hold = CapacityHold(("promised", job), goes_to[job], _still_missing(nominees[job], victims))
            if hold is not None:
                self._reserved[job] = hold
                self._places.hold(hold)
        # Only after the last nominee: its victims' pods still stand on their nodes, beside what is held there for it.
        for victim, holds in removed:
            self._places.restore_gang(victim, holds)

    def _hold_for(self, nominee: Gang, only: tuple[str, ...], now: datetime) -> CapacityHold | None:
        key = ("promised", nominee.job_id)
        with self._places.without_reservation():
            assignment = self._places.find(key, nominee, only, now)
        # What its victims use on these nodes is not missing in the rest of the cluster.
        return replace(Placement(0, assignment, ()).hold(key), waits=True) if assignment else None

    def check(self, unit: Unit, gang: Gang) -> Refused | None:
        """The quota's refusal of a gang that would take what is set aside for others; None if there is none."""
        if self._ledger is None or gang.job_id in self.nominees or not gang.asks_quota:
            return None
        return admission_pass.check_quota(self._ledger, unit)

    def own_reservation_lifted(self, gang: Gang) -> AbstractContextManager[None]:
        """Search as if nothing were held for this nominee."""
        hold = self._reserved.get(gang.job_id)
        return nullcontext() if hold is None else self._lifted(hold)

    @contextmanager
    def _lifted(self, hold: CapacityHold) -> Iterator[None]:
        self._places.release(hold.key)
        try:
            yield
        finally:
            self._places.hold(hold)

    def placed(self, gang: Gang) -> None:
        """Count a gang that was placed in this run; a nominee that was placed needs nothing set aside any more."""
        if gang.job_id in self.nominees:
            self.nominees.discard(gang.job_id)
            if (hold := self._reserved.pop(gang.job_id, None)) is not None:
                self._places.release(hold.key)
        elif gang.asks_quota:
            self.charged(gang.charge)

    def charged(self, charge: Charge) -> None:
        """Count what was charged in this run beside what is set aside."""
        if self._ledger is not None:
            self._ledger.charge(charge)


def _unfulfilled(evictions: Iterable[AdmittedGang], evicted: Iterable[AdmittedGang]) -> list[AdmittedGang]:
    """Evictions that still count for their preemptor: not those ordered before it was placed and then preempted itself."""
    since = {gang.job_id: gang.ordered_at for gang in evicted if gang.ordered_at}
    return [
        gang
        for gang in evictions
        if not (at := since.get(gang.leaves_for)) or not gang.ordered_at or at < gang.ordered_at
    ]


def _still_missing(nominee: Gang, victims: Iterable[AdmittedGang]) -> dict[str, int]:
    """The nominee's total minus what its victims still use."""
    missing = dict(nominee.total)
    for victim in victims:
        if victim.leaves_for == nominee.job_id:
            missing = {name: max(amount - victim.total.get(name, 0), 0) for name, amount in missing.items()}
    return missing
