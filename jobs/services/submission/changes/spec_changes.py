"""Which changes of a job that is in are taken: everything while no copy of it can run, little while one may.

Knows the job's works; changes nothing.
"""

import copy
from collections.abc import Iterator
from itertools import islice

from fleet.errors import Conflict, FieldFault, InvalidInput
from jobs.core.manifest_fields import Faults
from jobs.kinds import registry
from jobs.kinds.base import Manifest
from jobs.models import Job, Work
from jobs.services.submission.changes import restarts

_ENDING = (Work.State.SUSPENDING, Work.State.WITHDRAWING)
_AT_REST = (Work.State.SUSPENDED, Work.State.GONE, Work.State.KEPT)
"""States of works whose copy does not run and will not: it is suspended, gone, or has failed and is left to look at."""
_SHOWN_CHANGES = 5


def require_allowed(job: Job, manifest: Manifest, *, suspended: bool) -> bool:
    """Whether the change takes a restart of the job's pods, which its manifest asks for.

    What can never succeed is invalid, not a conflict: clients try a conflict again.
    """
    if job.finished and suspended != job.suspended:
        detail = f"the job has ended ({job.state}): it is neither suspended nor resumed any more"
        raise InvalidInput(f"{job}: {detail}", (FieldFault("spec", detail),))
    if job.attempt == 0:
        return False
    before, after = _essence(job.manifest, job), _essence(manifest, job)
    paths = list(islice(_changed(before, after), _SHOWN_CHANGES))
    if not paths or not (detail := _refusal(job)):
        return False
    if (
        not job.finished
        and restarts.is_asked_for(manifest["metadata"].get("annotations") or {}, Faults())
        and not suspended
    ):
        if not (why := restarts.refusal(job, job.cluster)):
            return True
        detail = (
            f"cannot change by a restart of its pods, because {why}: suspend the job, apply the change, and resume it"
        )
    raise InvalidInput(f"{job}: {', '.join(paths)} {detail}", tuple(FieldFault(path, detail) for path in paths))


def _refusal(job: Job) -> str:
    """Why the spec of a job that has been placed cannot change; empty: no copy of it can run.

    Raises `Conflict` where waiting is enough: its last copy is being stopped.
    """
    if job.finished:
        return f"cannot change any more, for the job has ended ({job.state}): delete it and apply it anew"
    if job.shares:
        return "cannot change any more, for shares of the job have run: delete it and apply it anew"
    copies = Work.objects.filter(job_uid=job.uid).exclude(state__in=_AT_REST).select_related("cluster").order_by("pk")
    running = next((work.cluster.name for work in copies if work.state not in _ENDING), "")
    if running or job.state in (*Job.ON_MEMBER, Job.State.RECLAIMING):
        where = f"while the job has a copy{running and f' on {running}'} that may run"
        restart = f"annotate it {restarts.ON_CHANGE}: {restarts.RESTART} to have its pods restarted at their place"
        return f"cannot change {where}: suspend the job, apply the change when it is suspended, and resume it; or {restart}"
    if copies or job.charge is not None:
        where = f" on {copies[0].cluster.name}" if copies else ""
        raise Conflict(f"{job}: its last copy{where} is still being stopped; apply the change again when it is gone")
    return ""


def _changed(before: object, after: object, path: str = "") -> Iterator[str]:
    """The paths of the fields that differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            yield from _changed(before.get(key), after.get(key), f"{path}.{key}" if path else key)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, pair in enumerate(zip(before, after, strict=True)):
            yield from _changed(*pair, f"{path}[{index}]")
    elif before != after:
        yield path


def _essence(manifest: Manifest, job: Job) -> Manifest:
    """The manifest's spec, without what may change at any time: its suspend switch, and how long it is kept after its end."""
    body = {"spec": copy.deepcopy(manifest["spec"])}
    kind = registry.kind_of(job.api_version, job.kind)
    kind.suspend(body, False)
    kind.drop_ttl(body)
    return body
