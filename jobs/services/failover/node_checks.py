"""Acts on a node check that has failed in a pod: the node is excluded for the job, and the attempt ends at once.

The pods are the tenant's: what they say of a node counts for their own job. Under ``restartPolicy: OnFailure`` no pod fails and
the member would start the check again for ever, so the fleet ends the attempt itself. No member is touched here.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from uuid import UUID

from fleet.core.members.pods import pod_details
from fleet.models import Pod
from jobs.core.failover import node_check
from jobs.core.failover.rules import Outcome
from jobs.core.reasons import Code, Reason
from jobs.models import Job
from jobs.services.failover import failover, node_faults

_MOST = 64
"""Pods of one report that are looked at: the others are, when they are reported again."""


def review(jobs: Mapping[UUID, Job], changed: Collection[tuple[UUID, int]], now: datetime) -> None:
    """Of the locked jobs, with attempts whose pods have changed, those of which a pod shows that its node failed the check."""
    if not changed:
        return
    current = {job.uid: job for job in jobs.values() if (job.uid, job.attempt) in changed and not job.shares}
    rows = Pod.objects.filter(job_uid__in=current, phase__in=["Pending", "Failed"]).exclude(node="")
    for pod in rows.filter(details__contains=node_check.CONTAINER).order_by("job_uid", "index")[:_MOST]:
        job = current.get(pod.job_uid) if pod.job_uid else None
        failed = node_check.failed(pod_details.parse(pod.details))
        if job is None or failed is None or pod.attempt != job.attempt:
            continue
        node_faults.shown_by_check(job, job.attempt, pod.node, failed.message, now, is_slow=failed.is_slow)
        what = "slow" if failed.is_slow else "faulty"
        message = f"the node check found {pod.node} {what}: {failed.message}"
        failover.leave(job, Outcome.FAILED, Reason(Code.APPLICATION_UNHEALTHY, message), now)
