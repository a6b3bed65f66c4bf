"""Shows on a job why its member does not create its pods, taken from the member's warning events, until the pods exist.

An event names an object, but has no labels that identify the job. It is assigned to a job if it is about the job's copy, or
about an object in the same namespace whose name begins with the copy's name, such as a Job of a JobSet. Events may be old,
numerous, and contain text from tenants. Therefore a job shows only one of them, replaced every few seconds at most, and its
timeline gets one entry for each reason.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from fleet.core.members.observed import ObservedRefusal
from fleet.models import Pod
from jobs.core.division import shares as parts
from jobs.core.division.shares import Share
from jobs.core.failover.causes import Cause
from jobs.core.life.shares import ShareState
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs, record_event
from jobs.models import Job, Work
from jobs.services.failover import shares
from jobs.services.lifecycle.locks import lock_jobs

_REPLACED_AFTER = timedelta(seconds=10)
_MOST = 500
"""How many events of a batch are processed, the latest ones. Controllers repeat the others."""
_WAITS_FOR_PODS = (Job.State.PLACED, Job.State.DISPATCHED)


@transaction.atomic
def record(cluster_id: int, refusals: Sequence[ObservedRefusal], now: datetime) -> None:
    """Shows the latest refusal on each job that waits for its pods on this cluster."""
    latest = _by_job(cluster_id, refusals[-_MOST:])
    rows = Job.objects.filter(uid__in=latest, state__in=_WAITS_FOR_PODS, deleting_at__isnull=True)
    here = rows.filter(~Q(shares=[]) | Q(cluster_id=cluster_id))
    for job in Job.objects.filter(pk__in=lock_jobs(here)).select_related("cluster").order_by("pk"):
        attempt, refusal = latest[job.uid]
        if job.shares:
            _record_of_share(job, attempt, refusal, now)
        elif (
            attempt == job.attempt and not _is_shown(job.reason or {}, _message(job, refusal), now) and _lacks_pods(job)
        ):
            _show(job, refusal, now)


def _record_of_share(job: Job, attempt: int, refusal: ObservedRefusal, now: datetime) -> None:
    """Shows the refusal of one share beside those of the others."""
    share = parts.find_live_share(parts.of_stored(job.shares), attempt)
    if share is None or share.state not in (ShareState.PLACED, ShareState.DISPATCHED):
        return
    shown, number = shares.refusals_of(job), str(attempt)
    message = f"{share.cluster} has its share but does not create its pods: {refusal.reason}: {refusal.message}"
    if _is_shown(shown.get(number) or {}, message, now) or _created(job, attempt) >= share.replicas:
        return
    if (shown.get(number) or {}).get("refused") != refusal.reason:
        record_event(job, "PodsRefused", message, now, warning=True)
    entry = {"message": message, "refused": refusal.reason, "at": now.isoformat()}
    job.reason = shares.with_refusals({**shown, number: entry})
    announce_jobs([job], now, ["reason"])


def drop_obsolete(job: Job, share: Share, created: int) -> None:
    """Removes the refusal of a share from the job's reason once all its pods exist. The caller saves the job."""
    shown = shares.refusals_of(job)
    if str(share.attempt) in shown and created >= share.replicas:
        others = {number: entry for number, entry in shown.items() if number != str(share.attempt)}
        job.reason = shares.with_refusals(others) if others else None


def is_current(job: Job, created: int) -> bool:
    """Whether the job's reason is a refusal, and some of its pods are still missing."""
    return "refused" in (job.reason or {}) and created < pods_of(job)


def pods_of(job: Job) -> int:
    return sum(role["replicas"] for role in job.roles)


def _by_job(cluster_id: int, refusals: Sequence[ObservedRefusal]) -> Mapping[UUID, tuple[int, ObservedRefusal]]:
    """The attempt and its last refusal, by the uid of the job."""
    wanted = Q(pk__in=[])
    for namespace in {refusal.namespace for refusal in refusals}:
        objects = (refusal.name for refusal in refusals if refusal.namespace == namespace)
        wanted |= Q(namespace=namespace, name__in={prefix for name in objects for prefix in _prefixes(name)})
    works = list(Work.objects.filter(wanted, cluster_id=cluster_id, state=Work.State.APPLIED))
    owners = ((refusal, _owner(refusal, works)) for refusal in refusals)
    return {work.job_uid: (work.attempt, refusal) for refusal, work in owners if work is not None}


def _prefixes(name: str) -> Iterable[str]:
    """The name and its prefixes before each dash, the longest first."""
    parts = name.split("-")
    return ("-".join(parts[:count]) for count in range(len(parts), 0, -1))


def _owner(refusal: ObservedRefusal, works: Sequence[Work]) -> Work | None:
    """The work whose copy the refusal is about. If several names match, the longest counts."""
    in_namespace = [work for work in works if work.namespace == refusal.namespace]
    for name in _prefixes(refusal.name):
        for work in in_namespace:
            if work.name == name and _concerns(refusal, work):
                return work
    return None


def _concerns(refusal: ObservedRefusal, work: Work) -> bool:
    """Whether an object whose name begins with the copy's name belongs to it.

    An object of the copy's own kind must be the copy itself. An object of another kind is assumed to be created for it.
    """
    if refusal.kind != work.kind:
        return True
    return refusal.name == work.name and refusal.uid in ("", work.object_uid or refusal.uid)


def _is_shown(shown: Mapping[str, Any], message: str, now: datetime) -> bool:
    """Whether the job shows this message already, or shows another one that is too recent to be replaced."""
    # The limit holds for every reason: events that alternate between reasons must not write the job and its timeline each time.
    if "refused" in shown and timedelta() <= now - datetime.fromisoformat(shown["at"]) < _REPLACED_AFTER:
        return True
    return message == shown.get("message")


def _lacks_pods(job: Job) -> bool:
    return _created(job, job.attempt) < pods_of(job)


def _created(job: Job, attempt: int) -> int:
    return Pod.objects.filter(job_uid=job.uid, attempt=attempt).count()


def _message(job: Job, refusal: ObservedRefusal) -> str:
    return f"{job.cluster} has the job but does not create its pods: {refusal.reason}: {refusal.message}"


def _show(job: Job, refusal: ObservedRefusal, now: datetime) -> None:
    message, is_new = _message(job, refusal), (job.reason or {}).get("refused") != refusal.reason
    reason = Reason(Code.MEMBER_REFUSED, message, cause=Cause.REFUSED).as_json()
    job.reason = {**reason, "refused": refusal.reason, "at": now.isoformat()}
    if is_new:
        record_event(job, "PodsRefused", message, now, warning=True)
    announce_jobs([job], now, ["reason"])
