"""Waiting gangs that may start with fewer pods than they ask for: the largest size that quota and room allow now.

Pure. It is looked for when a cycle has placed all it could and evicts no gang: what is left is of use to no
whole gang. Nothing is placed here. The gang gets the size, and is offered like any other in the next cycle.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from jobs.core.admission import admission_pass
from jobs.core.admission.inadmissible import find_inadmissible_reason
from jobs.core.admission.nominations import Nominations
from jobs.core.gang.types import Gang
from jobs.core.resizing.bounds import Sizes
from jobs.core.scheduling.scheduler import Scheduler
from quotas.core.trees.tree import QueuePolicy


@dataclass(frozen=True, slots=True)
class SmallStart:
    """A waiting gang as it would be with these sizes."""

    gang: Gang
    sizes: Sizes


def find_small_start(scheduler: Scheduler, jobs: Iterable[Sequence[SmallStart]], now: datetime) -> SmallStart | None:
    """The start of the first job that can start at one of its sizes, which are given from the smallest to the largest."""
    with scheduler.beside_nominees(now) as nominations:
        for options in jobs:
            job = options[0].gang.job_id
            if not _may_start(scheduler, job):
                continue
            start = scheduler.attempt("small_start", job, partial(_largest, scheduler, options, nominations, now))
            if start and start[0] is not None:
                return start[0]
    return None


def _may_start(scheduler: Scheduler, job: int) -> bool:
    """Whether it was its turn, and it could not start whole. In a queue of policy Block only the first has its turn."""
    group = scheduler.class_of(job)
    if group is None or not group.refused or group.options:  # what is charged by flavor does not grow
        return False
    quota, leaf = scheduler.quota, group.leaf
    if quota is None or not leaf or quota.ledger.tree.by_path[leaf].attributes.queue_policy is not QueuePolicy.BLOCK:
        return True
    waiting = [job for job in scheduler.gangs if (other := scheduler.class_of(job)) is not None and other.leaf == leaf]
    return job == min(waiting, key=lambda job: scheduler.unit(job).place)


def _largest(
    scheduler: Scheduler, options: Sequence[SmallStart], nominations: Nominations, now: datetime
) -> SmallStart | None:
    """By halves: where a size fits, the smaller ones do."""
    low, high = 0, len(options)
    while low < high:
        middle = (low + high) // 2
        if _fits(scheduler, options[middle].gang, nominations, now):
            low = middle + 1
        else:
            high = middle
    return options[low - 1] if low else None


def _fits(scheduler: Scheduler, gang: Gang, nominations: Nominations, now: datetime) -> bool:
    if find_inadmissible_reason(gang, scheduler.quota) is not None:
        return False
    clusters: tuple[str, ...] = ()
    if gang.asks_quota and scheduler.quota is not None:
        unit = admission_pass.unit_of(gang)
        if admission_pass.check_quota(scheduler.quota.ledger, unit) or nominations.check(unit, gang):
            return False
        if scheduler.before_window(gang) is not None:
            return False
        clusters = scheduler.quota.ledger.tree.by_path[gang.leaf].attributes.cluster_affinity
    shape = ("small start", gang.job_id, gang.pods)
    fits = scheduler.places.find(shape, gang, clusters, now) is not None
    scheduler.places.invalidate(shape)
    return fits
