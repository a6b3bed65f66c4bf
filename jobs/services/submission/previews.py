"""What manifests would do if they were applied now: what they would create, and where their jobs would go. Writes nothing.

The manifests are applied in a transaction that is taken back, so whatever refuses them refuses them here too. The jobs are
then shown to the scheduling cycle alone, as if no other job waited: the jobs ahead of them are listed beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings

from fleet.changes import dry_runs
from jobs import snapshot
from jobs.core.admission.snapshot import Snapshot
from jobs.core.gang.types import Gang
from jobs.core.policies import propagation
from jobs.core.reasons import Reason, Verdict
from jobs.core.scheduling import cycle
from jobs.models import Job
from jobs.services.submission import submit
from jobs.services.submission.submit import Applied

NAMED = 50
"""Jobs of a policy that are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """Of one job: its place, or why it would wait."""

    applied: Applied
    leaf: str = ""
    policy: str = ""
    roles: Sequence[Mapping[str, Any]] = ()
    total: Mapping[str, int] = field(default_factory=dict)
    cluster: str = ""
    """Empty: it would wait."""
    reason: Reason | None = None
    clusters: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True)
class Claims:
    """Of one policy: the unfinished jobs that would be its own, among them those of the same manifests."""

    applied: Applied
    count: int
    first: Sequence[Job]


@dataclass(frozen=True, slots=True)
class Preview:
    applied: list[Applied]
    jobs: list[Outlook]
    """Of those that would wait to be placed."""
    waiting: int
    """Jobs that wait already."""
    policies: list[Claims] = field(default_factory=list)


def preview_manifests(documents: Sequence[Mapping[str, Any]], *, by: str, now: datetime) -> Preview:
    waiting = snapshot.waiting_jobs().count()
    with dry_runs.taken_back():
        applied = submit.apply(documents, by=by, now=now)
        rows = {str(job.uid): job for job in _new_to_the_queue(applied)}
        gangs = snapshot.load_gangs(snapshot.waiting_jobs().filter(uid__in=list(rows)))
        sites = snapshot.load_sites()
        quota = snapshot.load_quota()
        charges = snapshot.charges_by_job(quota)
        claims = [_claims(each) for each in applied if each.kind in propagation.KINDS]
    plan = cycle.Plan()
    if gangs:
        facts = Snapshot(
            gangs, sites, quota, settings=settings.CONVOY_CYCLE, weights=settings.CONVOY_WEIGHTS, charges=charges
        )
        plan = cycle.run_cycle(facts, now)
    jobs = [_outlook(each, rows[each.uid], gangs, plan) for each in applied if each.uid in rows]
    return Preview(applied, jobs, waiting, claims)


def _claims(applied: Applied) -> Claims:
    """To apply a policy gives it the jobs that no other has claimed; see `policy_claims`."""
    own = Job.objects.filter(policy__uid=applied.uid, deleting_at__isnull=True).exclude(state__in=Job.FINISHED)
    first = own.only("uid", "namespace", "name").order_by("-priority", "queued_at", "pk")[:NAMED]
    return Claims(applied, own.count(), list(first))


def _new_to_the_queue(applied: Sequence[Applied]) -> list[Job]:
    jobs = Job.objects.filter(uid__in=[each.uid for each in applied if each.uid]).select_related("policy")
    return list(jobs.filter(state__in=Job.WAITING))


def _outlook(applied: Applied, job: Job, gangs: Sequence[Gang], plan: cycle.Plan) -> Outlook:
    policy = job.policy.name if job.policy else ""
    known = (applied, job.leaf, policy, job.roles, job.total)
    if (placed := next((each for each in plan.placed if each.gang.job_id == job.pk), None)) is not None:
        return Outlook(*known, cluster=placed.placement.where, clusters=placed.placement.verdicts)
    waits = next((each for each in plan.waits if each.gang.job_id == job.pk), None)
    return Outlook(*known, reason=waits.reason, clusters=waits.reason.clusters) if waits else Outlook(*known)
