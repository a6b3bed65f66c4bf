"""The size of a running job as rows: one transaction changes it with its charge, its hold, and the order to its member.

The size in force is what ``manifest``, ``roles`` and ``total`` say, so that every later placement of the job has it. No member
is touched here: `jobs.services.dispatch.copies.resizing` carries the order out.
"""

import copy
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import F

from fleet.changes import events
from fleet.models import Hold
from jobs.core.gang import requirements
from jobs.core.resizing import holds
from jobs.core.resizing.bounds import RESIZED, Sizes
from jobs.kinds import device_claims, registry
from jobs.kinds.base import Kind, Manifest
from jobs.models import Attempt, Binding, Job, Work
from jobs.services.lifecycle import gang_fields
from quotas.core.trees import amounts

SIZED = ("manifest", "charge", "resize", "generation", *gang_fields.FILLED)
"""Fields of a job that `change` sets, and does not save."""
State = Work.State
ANNOTATION = RESIZED
"""A report of a resized copy with another size than it was given orders it again."""


def kind_of(job: Job) -> Kind:
    return registry.kind_of(job.api_version, job.kind)


def in_force(job: Job) -> dict[str, int]:
    """The sizes of the roles that may be resized while the job runs; empty: none may."""
    bounds = kind_of(job).bounds(job.manifest)
    return {role["name"]: role["replicas"] for role in job.roles if role["name"] in bounds}


def asked_for(job: Job) -> dict[str, int]:
    """The sizes in force, or those that the job is to grow to."""
    return {**in_force(job), **waiting(job)}


def waiting(job: Job) -> dict[str, int]:
    """The sizes of the roles that are to grow, and have not grown yet."""
    return {} if job.finished else dict((job.resize or {}).get("sizes") or {})


def manifest_asked_for(job: Job) -> Manifest:
    """The manifest with the sizes that were asked for: what a person wrote last."""
    sizes = waiting(job)
    return with_sizes(kind_of(job), job.manifest, sizes) if sizes else job.manifest


def with_sizes(kind: Kind, manifest: Manifest, sizes: Sizes) -> Manifest:
    """A copy of the manifest with these sizes."""
    resized = copy.deepcopy(manifest)
    for role, size in sizes.items():
        kind.resize(resized, role, size)
    return resized


def change(job: Job, sizes: Sizes, now: datetime) -> None:
    """Gives the locked job these sizes, with its charge, and orders its copy to follow. The caller saves `SIZED`.

    The hold is the caller's: `shrink_hold`, or what a growth was placed on.
    """
    kind, gpus_before, pods_before = kind_of(job), job.gpus, _pods(job)
    job.manifest = with_sizes(kind, job.manifest, sizes)
    gang_fields.fill(job, kind, device_claims.read(kind, job.manifest))
    if _pods(job) != pods_before:
        _record_size(job, gpus_before, now)
    if job.charge is not None:
        job.charge = amounts.of_job(job.total)
    job.generation += 1
    roles = " ".join(f"{{{role['name']} {role['replicas']}}}" for role in job.roles)
    if job.cluster is not None:
        Binding.objects.filter(job=job).update(result=f"{{{job.cluster.name}:0,[{roles}]}}")
    order(job, now)


def _record_size(job: Job, gpus_before: int, now: datetime) -> None:
    """Records what the current attempt had until now, so that its GPU-time stays what it was, and that its size changed now."""
    attempt = Attempt.objects.filter(job=job, number=job.attempt, ended_at=None).first()
    if attempt is None:
        return
    attempt.sizes = [*(attempt.sizes or []), [round(now.timestamp() * 1000), gpus_before]]
    attempt.gpus = job.gpus
    attempt.save(update_fields=["sizes", "gpus"])


def order(job: Job, now: datetime) -> None:
    """Orders that the copy of the current attempt is brought to the size in force."""
    works = Work.objects.filter(job_uid=job.uid, attempt=job.attempt, state__in=[State.SENDING, State.APPLIED])
    pks = list(works.values_list("pk", flat=True))
    Work.objects.filter(pk__in=pks).update(resize_wanted=F("resize_wanted") + 1, due_at=now, tries=0)
    for pk in pks:
        events.enqueue("jobs.push", pk)


def shrink_hold(job: Job, requests: Mapping[str, Mapping[str, int]], fewer: Sizes, now: datetime) -> None:
    """Takes the pods that are no more from the open hold of the job's attempt, if there is one.

    ``requests``: what one pod of each role asks; ``fewer``: how many pods of each role there are less.
    """
    held = Hold.objects.filter(job_uid=job.uid, attempt=job.attempt, released_at=None).select_for_update(no_key=True)
    hold = held.first()
    if hold is None:
        return
    for role, count in fewer.items():
        hold.nodes = holds.less(hold.nodes, requests[role], count)
        hold.amounts = holds.minus(hold.amounts, requests[role], count)
    hold.pods, hold.resized_at = pods_of(job), now
    # Nothing is left of what was held for the pods of a growth: no report of a pod would end this hold.
    hold.released_at = None if any(hold.amounts.values()) else now
    hold.save(update_fields=["nodes", "amounts", "pods", "resized_at", "released_at"])


def wait_for_less(job: Job, fewer: Sizes) -> None:
    """Takes these pods, which others were entitled to, from the sizes that the job waits for: it does not ask for them back.

    How many it waits for beside those that it has does not change. The caller saves `SIZED`.
    """
    if job.resize and (wanted := waiting(job)):
        less = {role: size - fewer.get(role, 0) for role, size in wanted.items()}
        job.resize = {**job.resize, "sizes": less}


def as_annotation(sizes: Sizes) -> str:
    """``worker=4``."""
    return ",".join(f"{role}={size}" for role, size in sorted(sizes.items()))


def repair(job: Job, manifest: Manifest, now: datetime) -> bool:
    """Orders the size in force again for a copy that was resized and has another one: it was changed in its member, or this
    database was restored from before. The job is locked.
    """
    metadata = manifest.get("metadata") or {}
    if ANNOTATION not in (metadata.get("annotations") or {}) or job.state != Job.State.RUNNING:
        return False
    sizes = {role.name: role.replicas for role in kind_of(job).read(manifest).roles}
    if all(sizes.get(role) == size for role, size in in_force(job).items()):
        return False
    known = Work.objects.filter(job_uid=job.uid, attempt=job.attempt, resize_wanted__gt=F("resize_done"))
    if known.exists():
        return False
    order(job, now)
    return True


def tied_together(roles: list[dict[str, object]]) -> str:
    """Why more pods cannot be placed without regard to those that run; empty: they can."""
    demand = requirements.of_stored(roles)
    if demand is None:
        return ""
    if demand.within.required:
        return "its pods have to share a network domain, and more are not placed beside those that run"
    return "its pods keep apart from each other, and more are not placed beside those that run" if demand.apart else ""


def pods_of(job: Job) -> int:
    return sum(_pods(job).values())


def _pods(job: Job) -> dict[str, int]:
    return {role["name"]: role["replicas"] for role in job.roles}


def shown(job: Any) -> dict[str, Any] | None:
    """The growth that waits, as every door shows it; None: none does. ``job``: the row, or its columns."""
    return job.resize if job.resize and job.state not in Job.FINISHED else None
