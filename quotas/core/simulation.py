"""Simulation to a fixpoint: admission and reclaim in turn until nothing changes, for a set of jobs under a tree.

For what-if questions and for the laws. The engine is the one of the real cycle (`quotas.core.queues.fair_share`,
`quotas.core.reclaiming.reclaim`); only time is missing: a job that is admitted runs at once, and one that is stopped waits
again at its old place at once. So jobs within their min-runtime are evicted as well, after all others; a victim says when.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, partial

from quotas.core.accounts.ledger import Ledger
from quotas.core.queues import choices
from quotas.core.queues.admission import Refused
from quotas.core.queues.fair_share import Behind, FairShareIterator
from quotas.core.queues.order import Unit
from quotas.core.reclaiming import borrowers, reclaim
from quotas.core.reclaiming.candidates import Candidates, Running
from quotas.core.reclaiming.victims import Reclaim
from quotas.core.trees.flavors import FlavorChoice


@dataclass(frozen=True, slots=True)
class Job:
    """A waiting job, or one that runs when it has started."""

    unit: Unit
    started_at: datetime | None = None
    elastic: bool = False
    checkpointed: bool = False
    lost_s: float = 0.0
    """Seconds of work that are lost when it is stopped."""
    protected_until: datetime | None = None
    """When it may first be evicted for the promise of another queue; None: now."""

    def running(self, since: datetime) -> Running:
        about = (self.unit.id, self.unit.charge, self.unit.priority, since, self.elastic, self.checkpointed)
        return Running(*about, lost_s=self.lost_s, protected_until=self.protected_until)


Places = Callable[[Unit, Mapping[str, Job], frozenset[str]], bool]
"""Whether a job would find a place beside these running ones, with those gone. Called once for all of one shape."""


def place_anywhere(_unit: Unit, _running: Mapping[str, Job], _gone: frozenset[str]) -> bool:
    """Every job has a place: for questions about the quota alone."""
    return True


@dataclass(frozen=True, slots=True)
class NoPlace:
    """The quota admits the job, but no cluster holds it."""

    code: str = "NoClusterFits"
    message: str = "the quota has room for it, and no cluster"


Wait = tuple[Unit, Refused | Behind | NoPlace]


@dataclass(slots=True)
class Settled:
    running: dict[str, Job]
    waits: list[Wait] = field(default_factory=list)
    reclaims: list[Reclaim] = field(default_factory=list)
    in_vain: set[str] = field(default_factory=set)
    """Jobs for which nothing can be reclaimed: they do not wait for a flavor before they try the next."""
    claimed: set[str] = field(default_factory=set)
    """Jobs that others were stopped for so that they may borrow."""
    stopped_for: dict[str, str] = field(default_factory=dict)
    """Of jobs that were stopped the job that this was for, until they start again."""


def simulate_to_fixpoint(
    ledger: Ledger, jobs: Iterable[Job], now: datetime, places: Places = place_anywhere
) -> Settled:
    """Run the simulation; the ledger has the running jobs charged already, and ends with those that run at the fixpoint."""
    every = {job.unit.id: job for job in jobs}
    settled = Settled({key: job for key, job in every.items() if job.started_at is not None})
    while True:
        waiting = [job.unit for key, job in every.items() if key not in settled.running]
        settled.waits = _admit_waiting(ledger, waiting, every, settled, now, places)
        if not _reclaim_entitled(ledger, every, settled, now, places):
            return settled


def _admit_waiting(
    ledger: Ledger, waiting: list[Unit], every: Mapping[str, Job], settled: Settled, now: datetime, places: Places
) -> list[Wait]:
    iterator = FairShareIterator(ledger, waiting)
    unplaced: list[Wait] = []

    def has_place(unit: Unit) -> bool:
        return places(unit, settled.running, frozenset())

    while (unit := iterator.next()) is not None:
        answer = choices.choose(ledger, unit, has_place, stops=unit.id not in settled.in_vain)
        if isinstance(answer, Refused):
            iterator.refused(unit, answer)
        elif answer is not None:
            _start_job(ledger, every[unit.id], answer, settled, now)
            iterator.admitted(unit)
        else:
            unplaced.append((unit, NoPlace()))
            iterator.passed(unit)
    return unplaced + iterator.waits


def _reclaim_entitled(
    ledger: Ledger, every: Mapping[str, Job], settled: Settled, now: datetime, places: Places
) -> bool:
    """Reclaim for every entitled waiting job in order; returns whether anything may start because of it."""
    jobs = [job.running(job.started_at) for job in settled.running.values() if job.started_at is not None]
    load = cache(lambda: Candidates(ledger, jobs))
    without_targets: set[object] = set()
    before, in_vain = len(settled.reclaims), False
    waiting = [unit for unit, answer in settled.waits if not isinstance(answer, Behind)]
    for unit in waiting:
        if unit.shape in without_targets:
            continue
        chosen = _search(ledger, unit, load, settled, places)
        if chosen is None:
            without_targets.add(unit.shape)
            in_vain |= _waits_for_flavor(ledger, unit) and unit.id not in settled.in_vain
            settled.in_vain.add(unit.id)
            continue
        _carry_out(ledger, every, *chosen, load(), settled, now)
    _claim_shares(
        ledger, every, [unit for unit in waiting if unit.id not in settled.running], load, settled, now, places
    )
    return in_vain or len(settled.reclaims) > before


def _claim_shares(
    ledger: Ledger, every: Mapping[str, Job], waiting: list[Unit], load: Callable[[], Candidates], settled: Settled,
    now: datetime, places: Places,
) -> None:  # fmt: skip
    """Reclaim between queues that borrow, for one job after the other, of the side that would borrow least."""
    waiting = [
        replace(unit, stopped_for=settled.stopped_for.get(unit.id, unit.stopped_for))
        for unit in waiting
        if unit.id not in settled.claimed
    ]
    claims = [unit for unit in waiting if borrowers.may_claim(ledger, unit)]
    while claims:
        unit = min(claims, key=lambda unit: (borrowers.share_after(ledger, unit.charge), unit.place))
        claims.remove(unit)
        for option in choices.choices_of(unit):
            plan = borrowers.search(ledger, option, load, partial(places, option, settled.running))
            if plan is not None:
                settled.claimed.add(unit.id)
                _carry_out(ledger, every, option, plan, load(), settled, now)
                break
        else:
            claims = [other for other in claims if (other.shape, other.claim) != (unit.shape, unit.claim)]


def _carry_out(
    ledger: Ledger,
    every: Mapping[str, Job],
    chosen: Unit,
    plan: Reclaim,
    candidates: Candidates,
    settled: Settled,
    now: datetime,
) -> None:
    for victim in plan.victims:
        candidates.take(victim.key)
        ledger.release(settled.running.pop(victim.key).unit.charge)
        settled.stopped_for[victim.key] = chosen.id
    _start_job(ledger, every[chosen.id], chosen, settled, now)
    settled.reclaims.append(plan)


def _search(
    ledger: Ledger, unit: Unit, load: Callable[[], Candidates], settled: Settled, places: Places
) -> tuple[Unit, Reclaim] | None:
    """The first flavor of the job that can be had by reclaim, and how."""
    for option in choices.choices_of(unit):
        plan = reclaim.search(ledger, option, load, partial(places, option, settled.running))
        if plan is not None and plan.victims:
            return option, plan
    return None


def _waits_for_flavor(ledger: Ledger, unit: Unit) -> bool:
    preference = ledger.tree.by_path[unit.leaf].attributes.preference
    return len(unit.choices) > 1 and preference.when_can_preempt is FlavorChoice.STOP


def _start_job(ledger: Ledger, job: Job, chosen: Unit, settled: Settled, now: datetime) -> None:
    ledger.charge(chosen.charge)
    settled.stopped_for[job.unit.id] = ""
    settled.running[job.unit.id] = replace(job, unit=chosen, started_at=now)
