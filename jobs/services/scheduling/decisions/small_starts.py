"""Elastic jobs that fit nowhere whole get the size at which they can start, which `jobs.core.scheduling.small_starts` finds.

The size is written in a transaction under the scheduler's lease, and the next cycle places the job as any other. After a
crash in between it waits with that size. It grows when it runs, as elastic jobs do.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from jobs import queries, snapshot
from jobs.core.resizing import bounds, holds, pace
from jobs.core.scheduling.small_starts import SmallStart
from jobs.events import announce_jobs, job_event
from jobs.models import Job
from jobs.services.lifecycle import cycle_requests, sizes
from jobs.services.scheduling.decisions import lease

_MOST_JOBS = 20
"""Jobs that are looked at in one cycle."""


def load() -> list[list[SmallStart]]:
    """By job, the most urgent first, the sizes below its own, from its min on."""
    rows = queries.small_starters().order_by("-priority", "queued_at", "pk")[:_MOST_JOBS]
    jobs = {job.pk: job for job in rows if len(job.size or {}) == 1 and not sizes.tied_together(job.roles)}
    wanted = [(job, replicas) for job in jobs.values() for replicas in _sizes(job)]
    gangs = snapshot.gangs_of([_as_gang(job, replicas) for job, replicas in wanted], {})
    by_size = {(gang.job_id, gang.pods): gang for gang in gangs if not gang.flavors}
    options: dict[int, list[SmallStart]] = defaultdict(list)
    for job, replicas in wanted:
        fewer = _role(job)[1] - replicas
        if (gang := by_size.get((job.pk, sizes.pods_of(job) - fewer))) is not None:
            options[job.pk].append(SmallStart(gang, {_role(job)[0]: replicas}))
    return list(options.values())


def _role(job: Job) -> tuple[str, int]:
    """The role that may have another size, and its size."""
    ((name, size),) = (job.size or {}).items()
    return name, size["replicas"]


def _sizes(job: Job) -> Sequence[int]:
    name, size = _role(job)
    return pace.start_sizes(max((job.size or {})[name]["min"], 1), size)


def _as_gang(job: Job, replicas: int) -> dict[str, Any]:
    """The columns of the waiting gang, as if it had this size."""
    name, _ = _role(job)
    roles = [{**role, "replicas": replicas} if role["name"] == name else role for role in job.roles]
    total: dict[str, int] = {}
    for role in roles:
        total = holds.plus(total, {resource: amount * role["replicas"] for resource, amount in role["request"].items()})
    row = {column: getattr(job, column) for column in snapshot.WAITING}
    return {**row, "roles": roles, "total": total}


@transaction.atomic
def write(start: SmallStart, epoch: int, now: datetime) -> bool | None:
    """Gives the job its smaller size. False: it has changed since it was read; None: the lease was lost."""
    if not lease.renew(epoch, now):
        return None
    rows = queries.small_starters().filter(pk=start.gang.job_id, generation=start.gang.generation, leaf=start.gang.leaf)
    job = rows.select_for_update(no_key=True, of=("self",)).first()
    if job is None:
        return False
    before = sizes.in_force(job)
    sizes.change(job, start.sizes, now)
    message = (
        f"{bounds.changed(before, start.sizes)}: it is elastic, and there is no room or quota for all of it;"
        " it grows when there is"
    )
    announce_jobs([job], now, sizes.SIZED, [job_event(job, "StartsSmall", message)])
    cycle_requests.request()
    return True
