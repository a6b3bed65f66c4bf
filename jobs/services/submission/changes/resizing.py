"""A person gives a running job another size: less is decided here and now, more is asked of the scheduling cycle.

The bounds are those of the job's kind (`Kind.bounds`). A later request replaces a growth that still waits.
"""

from datetime import datetime

from django.db import transaction

from fleet.errors import Conflict, FieldFault, InvalidInput
from jobs import metrics, snapshot
from jobs.core.resizing import bounds
from jobs.core.resizing.bounds import Sizes
from jobs.events import announce_jobs, record_event
from jobs.kinds import device_claims, registry
from jobs.kinds.base import Manifest, Reading
from jobs.models import Job, Work
from jobs.services.lifecycle import cycle_requests, sizes

_RESTS = (Work.State.SUSPENDED, Work.State.GONE, Work.State.KEPT)


@transaction.atomic
def resize(job: Job, wanted: Sizes, *, by: str, now: datetime) -> Job:
    """Gives the roles of a running job these sizes. Of a job with one such role it may be named ``""``."""
    locked = (
        Job.objects.select_for_update(no_key=True, of=("self",)).select_related("cluster").filter(pk=job.pk).first()
    )
    if locked is None or locked.deleting_at is not None:
        raise Conflict(f"{job} is gone, or being deleted")
    in_force = sizes.in_force(locked)
    if "" in wanted and len(in_force) > 1:
        detail = f"name the role to resize: {', '.join(in_force)}"
        raise InvalidInput(f"{job}: {detail}", (FieldFault("role", detail),))
    if "" in wanted:
        wanted = {role: wanted[""] for role in in_force or ("",)}
    request(locked, {**sizes.asked_for(locked), **wanted}, by=by, now=now)
    return locked


def asked_for(job: Job, manifest: Manifest) -> dict[str, int] | None:
    """The sizes that a new manifest of a job asks for; None: they are not decided by themselves, as no copy of it can run."""
    in_force = sizes.in_force(job)
    if not in_force or job.attempt == 0 or job.finished:
        return None
    kind = registry.kind_of(job.api_version, job.kind)
    roles = {role.name: role.replicas for role in kind.read(manifest).roles}
    wanted = {role: roles.get(role, 0) for role in in_force}
    is_unchanged = wanted == sizes.asked_for(job)
    return wanted if is_unchanged or job.state == Job.State.RUNNING or _may_run(job) else None


def at_size_in_force(job: Job, manifest: Manifest) -> tuple[Manifest, Reading]:
    """The new manifest with the sizes that the job has now, and its reading."""
    kind = registry.kind_of(job.api_version, job.kind)
    resized = sizes.with_sizes(kind, manifest, sizes.in_force(job))
    return resized, device_claims.read(kind, resized)


def request(job: Job, wanted: Sizes, *, by: str, now: datetime, returns_lost: bool = False) -> None:
    """Decides what becomes smaller and notes what is to grow. The job is locked. Raises `InvalidInput` with the numbers.

    ``returns_lost``: the fleet asks by itself for what a reclaim took.
    """
    in_force = sizes.in_force(job)
    if wanted == {**in_force, **sizes.waiting(job)}:
        return
    _require_possible(job, in_force, wanted)
    growing = {role: size for role, size in wanted.items() if size > in_force[role]}
    smaller = {role: size for role, size in wanted.items() if size < in_force[role]}
    if growing != sizes.waiting(job):
        asked = {"sizes": growing, "by": by, "at": now.isoformat()}
        job.resize = asked | ({"returns_lost": True} if returns_lost else {}) if growing else None
    if smaller:
        _shrink(job, in_force, smaller, by, now)
    if growing:
        message = f"{bounds.changed(in_force, growing)}, asked for by {by}: waits for quota and room on {job.cluster}"
        record_event(job, "ResizeRequested", message, now)
    announce_jobs([job], now, sizes.SIZED)
    cycle_requests.request()


def _shrink(job: Job, before: Sizes, smaller: Sizes, by: str, now: datetime) -> None:
    requests = {role["name"]: role["request"] for role in job.roles}
    sizes.change(job, smaller, now)
    sizes.shrink_hold(job, requests, {role: before[role] - size for role, size in smaller.items()}, now)
    transaction.on_commit(metrics.RESIZES.labels("shrink").inc, robust=True)
    record_event(job, "Resized", f"{bounds.changed(before, smaller)}, by {by}", now)


def _require_possible(job: Job, in_force: Sizes, wanted: Sizes) -> None:
    limits = registry.kind_of(job.api_version, job.kind).bounds(job.manifest)
    if unknown := sorted(wanted.keys() - in_force.keys()):
        _refuse(job, "role", _without_bounds(job, in_force, unknown))
    changing = [role for role, size in wanted.items() if size != in_force[role]]
    field = limits[changing[0]].field if changing else "role"
    if job.state != Job.State.RUNNING or job.suspended:
        now = ", ".join(f"{size} {role}" for role, size in in_force.items())
        _refuse(job, field, f"only a running job is resized, and it is {job.state} with {now}")
    if job.shares:
        _refuse(job, field, "it is divided over clusters, and such a job is not resized while it runs")
    if snapshot.flavors_charged(job.charge):
        _refuse(job, field, "it is charged by GPU flavor: suspend the job, apply another size, and resume it")
    for role in changing:
        if why := limits[role].refusal(role, wanted[role], in_force[role]):
            _refuse(job, limits[role].field, why)
    if any(wanted[role] > in_force[role] for role in changing) and (why := sizes.tied_together(job.roles)):
        _refuse(job, field, f"{why}: to grow, suspend the job, apply another size, and resume it")


def _without_bounds(job: Job, in_force: Sizes, unknown: list[str]) -> str:
    kind = registry.kind_of(job.api_version, job.kind)
    anew = "suspend the job, apply another size, and resume it"
    if in_force:
        return f"role {', '.join(unknown)} is not resized while the job runs, only {', '.join(in_force)} is: {anew}"
    how = f"{kind.how_to_resize}, or {anew}" if kind.how_to_resize else anew
    return f"this {job.kind} is not resized while it runs: {how}"


def _refuse(job: Job, field: str, detail: str) -> None:
    raise InvalidInput(f"{job}: {detail}", (FieldFault(field, detail),))


def _may_run(job: Job) -> bool:
    """Whether a copy of the job may run: then a changed size is refused with its state, not as any other change of the spec."""
    works = Work.objects.filter(job_uid=job.uid).exclude(state__in=_RESTS)
    return job.state in (*Job.ON_MEMBER, Job.State.RECLAIMING) or (job.state == Job.State.MOVING and works.exists())
