"""What would become of jobs in the queues if they were submitted now: admitted and where, or waiting and until when, and whom
they would take their place back from. Writes nothing.

The manifests are applied in a transaction that is taken back, so whatever refuses them refuses them here too. Then the whole
line is played once, with those ahead of them in their places: a cycle, and the reclaim that would follow it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from fleet.changes.dry_runs import taken_back
from jobs import snapshot
from jobs.core.gang.types import AdmittedGang
from jobs.core.preemption import planner
from jobs.core.preemption.planner import Eviction
from jobs.core.reasons import Reason
from jobs.core.scheduling.scheduler import Scheduler
from jobs.models import Job
from jobs.services.scheduling import known_ends, runtimes
from jobs.services.scheduling.decisions import preemption
from jobs.services.scheduling.demand import estimates
from jobs.services.scheduling.plan_failures import guard
from jobs.services.submission import submit
from jobs.services.submission.submit import Applied
from quotas.core.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """One that would have to leave."""

    uid: str
    name: str
    """``namespace/name``."""
    leaf: str
    cluster: str
    message: str
    lost_gpu_hours: float
    """Of work that it has not saved."""
    not_before: datetime | None = None
    """When it would leave at the earliest, by the min-runtime of queues; None: at once."""


@dataclass(frozen=True, slots=True)
class Outcome:
    applied: Applied
    leaf: str
    priority: int
    outcome: str
    """Starts; Reclaims: it starts once others have left for it; or Waits."""
    cluster: str = ""
    reason: Reason | None = None
    """Why it does not start at once."""
    estimate: Estimate | None = None
    """When it may start, where that can be guessed."""
    reclaims: tuple[Reclaimed, ...] = ()


def preview_outcomes(documents: Sequence[Mapping[str, Any]], *, by: str, now: datetime) -> list[Outcome]:
    """Of each of the jobs that would wait to be placed, in the order given."""
    with taken_back():
        applied = submit.apply(documents, by=by, now=now)
        rows = {str(job.uid): job for job in snapshot.waiting_jobs().filter(uid__in=[a.uid for a in applied if a.uid])}
        played = _Played(now) if rows else None
        return [played.outcome(each, rows[each.uid]) for each in applied if played and each.uid in rows]


def _message(target: AdmittedGang, message: str) -> str:
    """Why a gang goes, or how many of its pods do while it runs on."""
    sizes = dict(target.sizes)
    some = ", ".join(f"{count} of {sizes[role]} {role} pods" for role, count in target.fewer)
    return f"gives back {some} and runs on: {message}" if some else message


class _Played:
    """The next cycle, and what it would order."""

    def __init__(self, now: datetime) -> None:
        scheduler = Scheduler.from_snapshot(snapshot.load(now), guard)
        scheduler.ends = partial(known_ends.load, now)
        plan = scheduler.run(now, partial(runtimes.load, now))
        quota = scheduler.quota
        self.places = {each.gang.job_id: each.placement.where for each in plan.placed}
        self.reasons = {each.gang.job_id: each.reason for each in plan.waits}
        self.orders = planner.plan_preemption(
            scheduler,
            plan,
            lambda: snapshot.load_runners(snapshot.running_jobs(), quota) if quota else (),
            now,
            preemption.eviction_costs,
        )
        self.starts = estimates.starts_now(now)
        self.uids = dict(Job.objects.filter(pk__in=self._victims()).values_list("pk", "uid"))

    def _victims(self) -> list[int]:
        return [eviction.target.job_id for eviction in self._evictions()]

    def _evictions(self) -> list[Eviction]:
        return [*self.orders.evictions, *self.orders.deferred]

    def outcome(self, applied: Applied, job: Job) -> Outcome:
        known = (applied, job.leaf, job.priority)
        if job.pk in self.places:
            return Outcome(*known, "Starts", self.places[job.pk])
        reason, estimate = self.reasons.get(job.pk), self.starts.get(estimates.unit_key(job))
        taken = [each for each in self._evictions() if each.preemptor.job_id == job.pk]
        if not taken:
            return Outcome(*known, "Waits", "", reason, estimate)
        leave = tuple(
            Reclaimed(
                str(self.uids[r.job_id]),
                r.name,
                r.charge.leaf,
                r.cluster,
                _message(r, victim.message),
                round(victim.lost_gpu_hours, 2),
                r.until if r.deferred else None,
            )
            for each in taken
            for r, victim in [(each.target, each.victim)]
        )
        return Outcome(*known, "Reclaims", taken[0].goes_to, reason, estimate, leave)
