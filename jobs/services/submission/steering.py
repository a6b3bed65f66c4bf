"""What a person orders for one job beside its switch: another priority, a preemption by hand, and the same job once more.

Each is one transaction under the job's row lock. Who may order it is the door's question; where the ceilings of priorities are,
and what a manifest may say, is asked of the services that know.
"""

import copy
import re
from datetime import datetime

from django.db import transaction

from fleet.errors import Conflict, FieldFault, InvalidInput
from jobs import snapshot
from jobs.core.gang.entitlement import PRIORITY, priority_fault
from jobs.events import announce_jobs, record_event
from jobs.kinds import registry
from jobs.kinds.base import without_resolved
from jobs.models import Job
from jobs.services.lifecycle import cycle_requests, sizes
from jobs.services.lifecycle.copies import copy_metadata
from jobs.services.scheduling.decisions import preemption
from jobs.services.scheduling.demand import priorities
from jobs.services.submission import submit

_RERUN = re.compile(r"-r[0-9]{1,4}$")
_RERUNS = 1000
_SHORT = 40
"""A name up to this length is lengthened; a longer one is cut, so that the names of its pods stay possible."""


@transaction.atomic
def reprioritize(job: Job, priority: int, *, by: str, now: datetime) -> Job:
    """Gives an unfinished job this priority, by the annotation that its manifest could have had. Its author stays the same."""
    job = _locked(job)
    if job.finished:
        raise Conflict(f"the job has ended ({job.state})")
    text = str(priority)
    if detail := priority_fault(text):
        raise InvalidInput(f"priority {detail}", (FieldFault("priority", detail),))
    if job.priority == priority:
        raise Conflict(f"its priority is {priority} already")
    manifest, was, former = job.manifest, job.priority, priorities.former(job)
    metadata = manifest["metadata"]
    annotations = {**(metadata.get("annotations") or {}), PRIORITY: text}
    job.manifest = {**manifest, "metadata": {**metadata, "annotations": annotations}}
    priorities.fill(job, snapshot.tree_in_force()[0], by, former)
    job.generation += 1
    job.save(update_fields=["manifest", "generation", *priorities.FILLED])
    copy_metadata.order(job, manifest, now)
    record_event(job, "Reprioritized", f"{by} changed its priority from {was} to {priority}", now)
    announce_jobs([job], now)
    cycle_requests.request()
    return job


@transaction.atomic
def preempt(job: Job, *, by: str, now: datetime) -> Job:
    """Stops the job where it runs, with its time to save its work, and queues it again where it stood."""
    job = _locked(job)
    if job.state not in Job.ON_MEMBER:
        raise Conflict(f"only a job that is on a cluster is preempted, and it is {job.state}")
    preemption.evict_by_hand(job, by, now)
    return job


def resubmit(job: Job, *, by: str, now: datetime) -> str:
    """Submits the manifest of an ended job once more, under a new name, which is returned."""
    if not job.finished:
        raise Conflict(f"it has not ended ({job.state}): clone it to run it twice")
    manifest = copy.deepcopy(without_resolved(sizes.manifest_asked_for(job)))
    if job.suspended:
        registry.kind_of(job.api_version, job.kind).suspend(manifest, False)
    manifest["metadata"]["name"] = name = _next_name(job)
    applied = submit.apply([manifest], by=by, now=now)
    if applied[0].action != "created":
        raise Conflict(f"another request has just submitted {name}: try again")
    return name


def _next_name(job: Job) -> str:
    """``llama-r2`` after ``llama``, ``llama-r3`` after that: the first that no job of its kind has."""
    base = _RERUN.sub("", job.name)
    stem = base[: max(1, max(len(job.name), _SHORT) - len(f"-r{_RERUNS}"))].rstrip("-.")
    same = Job.objects.filter(kind=job.kind, namespace=job.namespace, name__startswith=f"{stem}-r")
    taken = set(same.values_list("name", flat=True)[: 2 * _RERUNS])
    for number in range(2, _RERUNS):
        if (name := f"{stem}-r{number}") not in taken:
            return name
    raise Conflict(f"{job} was submitted {_RERUNS} times: clone it under another name")


def _locked(job: Job) -> Job:
    fresh = Job.objects.select_for_update(no_key=True).filter(pk=job.pk).first()
    if fresh is None or fresh.deleting_at is not None:
        raise Conflict("the job is gone, or being deleted")
    return fresh
