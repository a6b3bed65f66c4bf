"""Adopts copies that are newer than the database, because it was restored from a backup made before they were sent.

Such a copy has a valid signature of Convoy, and an attempt number above that of the job's row. Because the attempt number is
the fencing token, the highest attempt that was ever sent becomes the job's current attempt and supersedes the stored one. A
copy that does not match the job as it is stored is a leftover: it is removed, and the next attempt gets a higher number.
Nothing is placed or sent while such copies may still be undiscovered (`fleet.services.clusters.freshness.unobserved`).
"""

from datetime import datetime

from django.db.models import Exists, OuterRef
from structlog import get_logger

from fleet.core.members import fence
from fleet.models import Cluster, Hold, Pod
from jobs.core.failover.rules import Outcome
from jobs.core.life.jobs import JOB, JobEvent
from jobs.core.life.works import WorkEvent
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs, announce_works, job_event
from jobs.kinds import registry
from jobs.kinds.base import FINISHED, Manifest
from jobs.models import Attempt, Binding, DeletedJob, Job, Work
from jobs.services.lifecycle import cycle_requests, transitions, works
from jobs.services.lifecycle.accounting import flavor_charges
from jobs.snapshot import LIVE
from quotas.core.trees import amounts

log = get_logger(__name__)

_ADOPTED = ("state", "cluster", "attempt", "reason", "status", "charge", "charged_at", "reclaim", "unhealthy_since")


def adopt(job: Job, cluster: Cluster, attempt: int, copy: Manifest, now: datetime) -> bool:
    """Makes the copy's attempt the job's current one. The job's row is locked. False if the copy does not match the job."""
    if attempt <= job.attempt or not _matches(job, copy):
        return False
    message = f"attempt {attempt} on {cluster.name} is newer than this database, which was restored from a backup"
    log.warning("copy adopted", job=str(job), attempt=attempt, cluster=cluster.name, former_attempt=job.attempt)
    if job.attempt:
        works.end_attempt(job, Outcome.SUPERSEDED, message, now)
    transitions.enter(job, JobEvent.ADOPTED)
    job.cluster, job.attempt = cluster, attempt
    job.status, job.reclaim, job.unhealthy_since = {}, None, None
    job.reason = Reason(Code.WAITING_FOR_PODS, f"{cluster.name} has the job; {message}").as_json()
    if job.leaf and job.charge is None:
        job.charge, job.charged_at = amounts.of_job({**job.total, **flavor_charges.of_copy(job, copy)}), now
    work = _record(job, cluster, copy, now)
    _withdraw_former(job, now)
    event = job_event(job, "CopyAdopted", f"{message}: it becomes the current attempt", warning=True)
    announce_jobs([job], now, _ADOPTED, [event])
    announce_works([work], now)
    cycle_requests.request()
    return True


def number_above(job: Job, attempt: int, now: datetime) -> None:
    """Gives the next attempt of a waiting or suspended job a higher number than this leftover. The job's row is locked."""
    if job.attempt < attempt and job.state in (*Job.WAITING, Job.State.SUSPENDED):
        job.attempt = attempt
        announce_jobs([job], now, ["attempt"])


def unknown_jobs() -> int:
    """The number of jobs that have pods in members but no row in this database."""
    job, deleted = (rows.filter(uid=OuterRef("job_uid")) for rows in (Job.objects, DeletedJob.objects))
    live = Pod.objects.filter(~Exists(job), ~Exists(deleted), phase__in=LIVE)
    return live.order_by().values("job_uid").distinct().count()


def problem() -> str:
    count = unknown_jobs()
    jobs = "1 job runs" if count == 1 else f"{count} jobs run"
    return f"{jobs} in members although this database does not know them: see events ObjectNotBelieved" if count else ""


def _matches(job: Job, copy: Manifest) -> bool:
    """Whether the copy can be the job's current attempt: neither is suspended or being deleted, and the roles are the same."""
    if not JOB.allows(job.state, JobEvent.ADOPTED) or job.suspended or job.deleting_at or job.shares:
        return False
    if copy["metadata"].get("deletionTimestamp"):
        return False
    reading = registry.kind_of(job.api_version, job.kind).read(copy)
    gang = {role["name"]: role["replicas"] for role in job.roles}
    return not reading.suspended and gang == {role.name: role.replicas for role in reading.roles}


def _record(job: Job, cluster: Cluster, copy: Manifest, now: datetime) -> Work:
    """Writes the rows that placing and sending the copy had written, and returns its work."""
    defaults = {"cluster_name": cluster.name, "placed_at": now}
    Attempt.objects.get_or_create(job=job, number=job.attempt, defaults=defaults)
    binding = {"cluster": cluster, "attempt": job.attempt, "result": "", "explanation": [], "placement": {}}
    Binding.objects.update_or_create(job=job, defaults={**binding, "scheduled_at": now})
    _hold(job, cluster, copy, now)
    return Work.objects.create(
        **works.new_row(job, job.attempt, WorkEvent.ADOPTED, now),
        cluster=cluster,
        marked=True,
        fenced=(copy["metadata"].get("labels") or {}).get(fence.LABEL) == fence.DEPENDS,
        object_uid=str(copy["metadata"].get("uid") or ""),
        applied_at=now,
    )


def _hold(job: Job, cluster: Cluster, copy: Manifest, now: datetime) -> None:
    """Creates a hold if some pods are not bound to nodes yet, unless the copy has ended."""
    pods = sum(role["replicas"] for role in job.roles)
    bound = Pod.objects.filter(cluster=cluster, job_uid=job.uid, attempt=job.attempt).exclude(node="").count()
    status = registry.kind_of(job.api_version, job.kind).read_status(copy.get("status") or {}, 0)
    if bound < pods and status.phase not in FINISHED:
        fields = {"cluster": cluster, "amounts": job.total, "nodes": [], "pods": pods, "made_at": now}
        Hold.objects.get_or_create(job_uid=job.uid, attempt=job.attempt, defaults=fields)


def _withdraw_former(job: Job, now: datetime) -> None:
    works.drop_unsent([job], now)
    works.order(Work.objects.filter(job_uid=job.uid, attempt__lt=job.attempt), WorkEvent.SUPERSEDED, now)
