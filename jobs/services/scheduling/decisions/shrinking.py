"""Takes single pods from running elastic jobs for preemptors, before any job is evicted whole: `jobs.core.preemption` decides.

The decision is part of the plan's transaction: size, charge, hold and the order to the member change with it, as in every
resize. What the pods use of their nodes until they are gone is set aside for the preemptor, by the record in `Job.shrinks`,
which ends some time after the pods' grace period: if they are there still, the preemptor is planned for again.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from fleet.changes import events
from fleet.db import isolation, prepared
from jobs import metrics, snapshot
from jobs.core.failover.lifecycle import grace_s
from jobs.core.preemption.planner import Eviction
from jobs.core.resizing import bounds
from jobs.events import announce_jobs, job_event
from jobs.models import Job
from jobs.services.lifecycle import sizes
from quotas.core.queues.job_names import shown_to

COLUMNS = ("shrinks", *sizes.SIZED)
"""Fields of a job that `shrink` sets, and does not save."""


def is_unchanged(job: Job, taken: Eviction) -> bool:
    """Whether the job still has the size that it was planned to give back from."""
    runs = job.state == Job.State.RUNNING and not job.suspended and not job.shares
    return runs and sizes.in_force(job) == dict(taken.target.sizes)


def shrink(evictions: Sequence[Eviction], jobs: Mapping[int, Job], now: datetime) -> list[events.Line]:
    """Makes the locked jobs smaller; returns what their timelines say. The caller announces them, when all else is locked."""
    return [_shrink(jobs[taken.target.job_id], taken, now) for taken in evictions]


def _shrink(job: Job, taken: Eviction, now: datetime) -> events.Line:
    before = sizes.in_force(job)
    fewer, requests = dict(taken.target.fewer), {role["name"]: role["request"] for role in job.roles}
    smaller = {role: before[role] - count for role, count in fewer.items()}
    sizes.change(job, smaller, now)
    sizes.shrink_hold(job, requests, fewer, now)
    sizes.wait_for_less(job, fewer)
    job.shrinks = [*(job.shrinks or []), _record(job, taken, before, smaller, now)]
    metrics.RESIZES.labels("shrink").inc()
    shown = shown_to(taken.preemptor.name, taken.target.name)
    why = f"{shown} of {taken.preemptor.leaf} {taken.victim.right}: {taken.victim.message}"
    return job_event(job, "Resized", f"{bounds.changed(before, smaller)}: {why}")


def _record(
    job: Job, taken: Eviction, before: Mapping[str, int], smaller: Mapping[str, int], now: datetime
) -> dict[str, Any]:
    grace = grace_s(job.manifest, sizes.kind_of(job).templates(job.manifest))
    events.enqueue("jobs.reclaim", str(job.uid), countdown_s=grace + 0.05)
    return {
        "job": taken.preemptor.job_id,
        "to": taken.goes_to,
        "cause": taken.victim.cause.value,
        "attempt": job.attempt,
        "sizes": {role: [before[role], size] for role, size in smaller.items()},
        "at": now.isoformat(),
        "until": (now + timedelta(seconds=grace)).isoformat(),
    }


def until(job: Job) -> datetime:
    """When the pods that were taken last have to be gone."""
    return datetime.fromisoformat((job.shrinks or [])[-1]["until"])


def settle(now: datetime) -> int:
    """Drops the records whose preemptor has had its time; returns how many jobs had one."""
    return sum(isolation.each("shrinking.settle", _SHRINKING.objects(), lambda job: _settle(job.pk, now), now))


_SHRINKING = prepared.Rows(lambda _: snapshot.shrinking_jobs())


@transaction.atomic
def _settle(pk: int, now: datetime) -> bool:
    job = snapshot.shrinking_jobs().filter(pk=pk).select_for_update(no_key=True, of=("self",)).first()
    if job is None:
        return False
    kept_for = timedelta(seconds=settings.CONVOY_CYCLE.nomination_s)
    records = job.shrinks or []
    left = [record for record in records if now < datetime.fromisoformat(record["until"]) + kept_for]
    if job.finished:
        left = []
    if len(left) == len(records):
        return False
    job.shrinks = left or None
    announce_jobs([job], now, ["shrinks"])
    return True
