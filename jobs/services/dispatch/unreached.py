"""What an unanswered dispatch means for other jobs: the circuit may open, and then each job that waits for it has that reason.

Most of these jobs are not tried before the circuit closes, so none of their own dispatches would record a reason.
"""

from datetime import datetime

from django.db import transaction

from fleet.member.errors import MemberAway
from fleet.models import Cluster
from fleet.services.clusters import circuits
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs
from jobs.models import Job, Work

_TOGETHER = 100


def record(work: Work, error: MemberAway, now: datetime) -> None:
    """Counts it against the member."""
    if circuits.unanswered(work.cluster, error.message, now):
        cluster = Cluster.objects.only("name", "circuit_opened_at").filter(pk=work.cluster_id).first()
        if cluster is not None and cluster.circuit_opened_at is not None:
            _write_reasons(cluster, now)


def waiting_message(cluster: Cluster) -> str:
    return f"{cluster.name} does not take it yet: {cluster.circuit_message}"


def _write_reasons(cluster: Cluster, now: datetime) -> None:
    reason = Reason(Code.WAITING_FOR_MEMBER, waiting_message(cluster)).as_json()
    waiting = Job.objects.filter(cluster_id=cluster.pk, state=Job.State.PLACED, deleting_at__isnull=True)
    known = waiting.order_by("pk").values_list("pk", "reason")
    pks = [pk for pk, known_reason in known if (known_reason or {}).get("message") != reason["message"]]
    for start in range(0, len(pks), _TOGETHER):
        with transaction.atomic():
            # Read anew under the lock: a job that left meanwhile has another reason.
            jobs = list(
                waiting.filter(pk__in=pks[start : start + _TOGETHER]).order_by("pk").select_for_update(no_key=True)
            )
            for job in jobs:
                job.reason = reason
            announce_jobs(jobs, now, ["reason"])
