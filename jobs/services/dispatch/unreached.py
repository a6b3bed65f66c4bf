"""Records whether a member answered a dispatch, and why a job is not sent yet.

When an unanswered one opens the member's circuit breaker, all jobs waiting for the member get the reason.

Most of these jobs are not dispatched before the circuit closes, so their own dispatches would not record it.
"""

from datetime import datetime

from django.db import transaction

from fleet.member.errors import MemberAway
from fleet.models import Cluster
from fleet.services.clusters import circuits, freshness
from jobs.core.division import shares as parts
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs
from jobs.models import Job, Work
from jobs.services.lifecycle.copies import fences

_CHUNK = 100


def record(work: Work, error: MemberAway, now: datetime) -> None:
    """Counts the failure against the member, and writes the reason to waiting jobs if its circuit is open."""
    if circuits.unanswered(work.cluster, error.message, now):
        cluster = Cluster.objects.only("name", "circuit_opened_at").filter(pk=work.cluster_id).first()
        if cluster is not None and cluster.circuit_opened_at is not None:
            _write_reasons(cluster, now)


def after_contact(work: Work, now: datetime) -> None:
    """Updates the member's circuit breaker after a dispatch that did not time out.

    A dispatch that sent no request to the member, because it waits for something else, is no evidence that it answers.
    """
    if work.answered_at is not None:
        circuits.answered(work.cluster, now, at=work.answered_at)
    elif work.cluster.circuit_opened_at is not None:
        circuits.no_contact(work.cluster, now)


def reason_not_to_send(work: Work, job: Job, now: datetime) -> str:
    """Why nothing is sent to the member now, whatever the job waits for. Empty if that may be tried."""
    cluster = work.cluster
    if freshness.predates_gap(cluster, work.created_at, now):
        return f"it was placed before a gap in watching {cluster.name}, whose current state is not known yet"
    if work.state == Work.State.PENDING and fences.holds_back(job, cluster):
        return f"{cluster.name} does not answer, and its policy would keep the job there once it may have been sent"
    return ""


def waiting_message(cluster: Cluster) -> str:
    return message(cluster, cluster.circuit_message)


def message(cluster: Cluster, error: str) -> str:
    return f"not sent to {cluster.name} yet: {error}"


def _write_reasons(cluster: Cluster, now: datetime) -> None:
    reason = Reason(Code.WAITING_FOR_MEMBER, waiting_message(cluster)).as_json()
    waiting = Job.objects.filter(cluster_id=cluster.pk, state=Job.State.PLACED, deleting_at__isnull=True)
    rows = waiting.order_by("pk").values_list("pk", "reason")
    pks = [pk for pk, stored in rows if (stored or {}).get("message") != reason["message"]]
    for start in range(0, len(pks), _CHUNK):
        with transaction.atomic():
            # Read again under the lock: a job that is no longer waiting has another reason by now.
            jobs = list(
                waiting.filter(pk__in=pks[start : start + _CHUNK]).order_by("pk").select_for_update(no_key=True)
            )
            for job in jobs:
                job.reason = reason
            announce_jobs(jobs, now, ["reason"])


def record_reason(job: Job, work: Work, code: Code, message: str, now: datetime) -> None:
    """Writes why the job does not run yet, if the message has changed."""
    reason = Reason(code, message).as_json()
    number = job.attempt if work.attempt in parts.counting(job.shares, job.attempt) else work.attempt
    current = Job.objects.filter(pk=job.pk, attempt=number, state=Job.State.PLACED)
    if (job.reason or {}).get("message") == message:
        return
    with transaction.atomic():
        if current.update(reason=reason):
            job.reason = reason
            announce_jobs([job], now)
