"""Loads the running jobs that are to grow, and writes the growths that a cycle decided: `jobs.core.scheduling.growth` decides.

A growth is one transaction under the scheduler's lease, apart from that of the plan: size, charge, hold, and the order to
the member change together. A job that has changed since it was read is left out, and looked at again in the next cycle.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, F

from fleet.changes import events
from fleet.models import Hold, Pod
from jobs import metrics, queries, snapshot
from jobs.core.gang.types import CapacityHold
from jobs.core.reasons import Code, Reason
from jobs.core.resizing import bounds, holds
from jobs.core.scheduling.growth import Grown, Growth, GrowthPlan
from jobs.events import announce_jobs, job_event
from jobs.models import Job, Work
from jobs.services.lifecycle import cycle_requests, sizes
from jobs.services.scheduling import apply, lease


def load() -> list[Growth]:
    """The growths that wait, but those of jobs that cannot be read."""
    jobs = {job.pk: job for job in queries.growing_jobs().select_related("cluster").defer("cluster__access")}
    jobs = {pk: job for pk, job in jobs.items() if job.cluster is not None and _added(job)}
    if not jobs:
        return []
    unready = _unready(list(jobs.values()))
    gangs = snapshot.gangs_of([_as_gang(job) for job in jobs.values()], {})
    return [_growth(jobs[gang.job_id], gang, unready.get(jobs[gang.job_id].uid)) for gang in gangs]


def _growth(job: Job, gang: Any, unready: Reason | None) -> Growth:
    cluster = job.cluster.name if job.cluster else ""
    total = holds.plus(job.total, gang.total)
    if snapshot.flavors_charged(job.charge):
        message = "it is charged by GPU flavor now: to grow it, suspend the job, apply another size, and resume it"
        unready = Reason(Code.NEVER_FITS, message)
    return Growth(gang, cluster, sizes.waiting(job), total, (str(job.uid), job.attempt), unready)


def _added(job: Job) -> list[dict[str, Any]]:
    """The job's roles with the pods to add alone. Whatever is to be divided is so before it is placed, not when it grows."""
    wanted = sizes.waiting(job)
    roles = [{**role, "replicas": wanted.get(role["name"], 0) - role["replicas"]} for role in job.roles]
    return [{name: role[name] for name in role if name != "divides"} for role in roles if role["replicas"] > 0]


def _as_gang(job: Job) -> dict[str, Any]:
    """The columns of a waiting gang, for the pods to add: it has no past attempts, and is charged where its job is."""
    roles = _added(job)
    total: dict[str, int] = {}
    for role in roles:
        total = holds.plus(total, {resource: amount * role["replicas"] for resource, amount in role["request"].items()})
    row = {name: getattr(job, name) for name in snapshot.WAITING}
    asked_at = datetime.fromisoformat((job.resize or {})["at"])
    own = {"roles": roles, "total": total, "queued_at": asked_at, "attempt": 0, "shares": []}
    return {**row, **own, "charge": None if job.charge is not None else {}}


def _unready(jobs: Sequence[Job]) -> Mapping[UUID, Reason]:
    """The jobs whose copy has not the size in force yet: pods that are leaving must not be taken for those that come."""
    current = {(job.uid, job.attempt): job for job in jobs}
    uids = [job.uid for job in jobs]
    ordered = Work.objects.filter(job_uid__in=uids, resize_wanted__gt=F("resize_done"))
    behind = set(ordered.values_list("job_uid", "attempt")) & current.keys()
    live = Pod.objects.filter(job_uid__in=uids, phase__in=snapshot.LIVE).order_by()
    counted = live.values_list("job_uid", "attempt").annotate(pods=Count("pk"))
    pods = {(uid, attempt): count for uid, attempt, count in counted}
    behind |= {key for key, job in current.items() if pods.get(key, 0) > sizes.pods_of(job)}
    return {
        uid: Reason(
            Code.WAITING_FOR_MEMBER,
            f"{current[uid, attempt].cluster} is still bringing it to the size in force:"
            f" {pods.get((uid, attempt), 0)} pods of {sizes.pods_of(current[uid, attempt])}",
        )
        for uid, attempt in behind
    }


@transaction.atomic
def write(plan: GrowthPlan, epoch: int, now: datetime) -> set[int] | None:
    """Writes the growths, and the reasons of those that wait. Returns the jobs that have grown; None: the lease was lost."""
    if not lease.renew(epoch, now):
        return None
    if not apply.is_tree_in_force(plan.tree_version):
        cycle_requests.request()
        return set()
    usable, is_closed = apply.usable_clusters(), apply.closed_queues()
    pks = [grown.growth.gang.job_id for grown in plan.grown] + [growth.gang.job_id for growth, _ in plan.waits]
    locked = Job.objects.filter(pk__in=pks).select_related("cluster").order_by("pk")
    jobs = {job.pk: job for job in locked.select_for_update(no_key=True, of=("self",))}
    grown = [
        (job, each)
        for each in plan.grown
        if (job := jobs.get(each.growth.gang.job_id)) is not None
        and _is_as_planned(job, each.growth)
        and job.cluster_id in usable
        and not is_closed(each.growth.gang)
    ]
    lines = [_grow(job, each, now) for job, each in grown]
    changed = [*(job for job, _ in grown), *_changed_waits(plan, jobs, now)]
    if changed:  # last: nothing else is locked once the journal is written to
        announce_jobs(changed, now, sizes.SIZED, lines)
    return {job.pk for job, _ in grown}


def _is_as_planned(job: Job, growth: Growth) -> bool:
    gang = growth.gang
    runs = job.state == Job.State.RUNNING and not job.suspended and job.deleting_at is None
    now = (job.attempt, job.generation, job.leaf, job.preemptible, sizes.waiting(job))
    return runs and now == (growth.hold_key[1], gang.generation, gang.leaf, gang.preemptible, growth.sizes)


def _grow(job: Job, grown: Grown, now: datetime) -> events.Line:
    before = sizes.in_force(job)
    sizes.change(job, grown.growth.sizes, now)
    job.resize = None
    _hold(job, grown.hold, now)
    metrics.RESIZES.labels("grow").inc()
    return job_event(job, "Resized", f"{bounds.changed(before, grown.growth.sizes)}, on {grown.growth.cluster}")


def _hold(job: Job, hold: CapacityHold, now: datetime) -> None:
    held = {
        "cluster_id": job.cluster_id,
        "amounts": dict(hold.total),
        "nodes": [[dict(amounts), list(names)] for amounts, names in hold.nodes],
        "pods": sizes.pods_of(job),
        "resized_at": now,
        "released_at": None,
    }
    Hold.objects.update_or_create(
        job_uid=job.uid, attempt=job.attempt, defaults=held, create_defaults={**held, "made_at": now}
    )


def _changed_waits(plan: GrowthPlan, jobs: Mapping[int, Job], now: datetime) -> Iterator[Job]:
    """Jobs with a new reason, which is set; a changed amount alone is new only when the reason is old."""
    for growth, reason in plan.waits:
        job = jobs.get(growth.gang.job_id)
        if job is None or job.resize is None or not _is_as_planned(job, growth):
            continue
        if apply.differs(reason, job.resize.get("reason"), now):
            job.resize = {**job.resize, "reason": {**reason.as_json(), "at": now.isoformat()}}
            yield job
