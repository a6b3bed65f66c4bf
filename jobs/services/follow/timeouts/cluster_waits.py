"""Sets the reason of jobs that wait for a cluster that does not answer, because their policy does not accept two copies."""

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from fleet.db import isolation, prepared
from fleet.models import Cluster
from jobs.core.policies.unreachable import UNREACHABLE, Unreachable
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs, record_event
from jobs.models import Job
from jobs.services.lifecycle.copies.fences import Fence
from jobs.services.lifecycle.locks import lock_jobs
from jobs.snapshot import spec_of

_EXPLAINED = (Job.State.RUNNING, Job.State.DISPATCHED)
"""States in which no other reason is more important."""


@transaction.atomic
def explain(job: Job, cluster: Cluster, fence: Fence, now: datetime) -> None:
    """Gives the job the reason, once for each time that the cluster is lost."""
    if job.state not in _EXPLAINED or job.reason_code == Code.WAITING_FOR_CLUSTER:
        return
    rows = Job.objects.filter(pk=job.pk, attempt=job.attempt, state=job.state, cluster=cluster)
    if not lock_jobs(rows):
        return
    message = _message(job, cluster.name, fence)
    rows.update(reason=Reason(Code.WAITING_FOR_CLUSTER, message).as_json())
    record_event(job, "WaitsForCluster", message, now, warning=True)
    job.refresh_from_db()
    announce_jobs([job], now)


def _message(job: Job, cluster: str, fence: Fence) -> str:
    spec = spec_of(job)
    policy, over = spec.unreachable, fence.over_at(job, spec)
    waits = f"{cluster} does not answer, and the policy says {UNREACHABLE}: {policy}: no other copy is started while the one"
    waits += " there may run"
    if over is not None:
        return f"{waits}, which the agent there stops by {over:%H:%M:%S} UTC; draining or detaching {cluster} moves it before"
    no_agent = f"; no agent in {cluster} is known to stop it" if policy is Unreachable.FENCE else ""
    return f"{waits}{no_agent}. It goes on once {cluster} answers; draining or detaching {cluster} moves it"


def end(now: datetime) -> int:
    """Removes the reason of jobs whose cluster answers again."""
    isolation.each("failover.cluster_waits", _ANSWERED.objects(), lambda job: _end(job, now), now)
    return 0


def _answered() -> QuerySet[Job]:
    waiting = Job.objects.filter(state__in=_EXPLAINED, reason_code=Code.WAITING_FOR_CLUSTER)
    return waiting.exclude(cluster__state=Cluster.State.UNKNOWN).select_related("cluster")


_ANSWERED = prepared.Rows(lambda _: _answered())


@transaction.atomic
def _end(job: Job, now: datetime) -> None:
    rows = Job.objects.filter(pk=job.pk, state=job.state, reason_code=Code.WAITING_FOR_CLUSTER)
    if not lock_jobs(rows):
        return
    again = Reason(Code.WAITING_FOR_PODS, f"{job.cluster} has the job, and answers again").as_json()
    rows.update(reason=None if job.state == Job.State.RUNNING else again)
    job.refresh_from_db()
    announce_jobs([job], now)
