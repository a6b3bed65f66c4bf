"""The steps of a job's life as spans of one trace: submit, queue, schedule, dispatch, start.

Each step runs in another process, and ends there. The context of the first span is stored with the job's row; every later span
is a child of it. A job submitted while tracing was off has no context, and its later steps are not recorded.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from django.db import transaction

from fleet import tracing
from fleet.tracing import Span
from jobs.models import Job, Work

_VERBS = {Work.State.SUSPENDING: "job.suspend", Work.State.WITHDRAWING: "job.withdraw"}


def submitted(jobs: Sequence[Job], began: datetime) -> None:
    """Begins the traces of new jobs, before their rows are stored; the first spans end when the transaction commits."""
    for job in jobs:
        span = tracing.begin(
            "job.submit", at=began, uid=str(job.uid), kind=job.kind, namespace=job.namespace, job=job.name
        )
        job.trace = span.context
        if job.trace:
            transaction.on_commit(span.end, robust=True)


def placed(job: Job, cluster: str, cycle_began: datetime) -> None:
    """Records that the job waited in its queue until a cycle began, and the cycle that has just placed it."""
    if not job.trace:
        return
    queued = min(job.queued_at, cycle_began)
    wait = tracing.begin("job.queue", parent=job.trace, at=queued, queue=job.leaf, attempt=job.attempt)
    wait.end(at=cycle_began)
    cycle = tracing.begin("job.schedule", parent=job.trace, at=cycle_began, cluster=cluster, attempt=job.attempt)
    cycle.end()


def dispatching(job: Job | None, work: Work) -> Span:
    """Begins one try at a work: to send a copy to its cluster, to suspend it there, or to remove it."""
    if job is None or not job.trace:
        return Span()
    name = _VERBS.get(Work.State(work.state), "job.dispatch")
    return tracing.begin(name, parent=job.trace, cluster=work.cluster.name, attempt=work.attempt)


def started(jobs: Sequence[Job], now: datetime) -> None:
    """Records, on commit, the time from when the cluster had the copy until all of its pods ran."""
    for job in jobs:
        if job.trace:
            transaction.on_commit(partial(_record_start, job, now), robust=True)


def _record_start(job: Job, now: datetime) -> None:
    work = Work.objects.filter(job_uid=job.uid, attempt=job.attempt).select_related("cluster").first()
    if work is not None and work.applied_at is not None:
        began = min(work.applied_at, now)
        span = tracing.begin("job.start", parent=job.trace, at=began, cluster=work.cluster.name, attempt=job.attempt)
        span.end(at=now)
