"""Makes jobs leave the nodes that a person drains, each as a whole and within the eviction rate of the cluster.

The node itself takes no pods: it is excluded for everyone (`fleet.services.clusters.node_exclusions`). A copy is removed before
its replacement is placed, since that may need the other nodes of the copy. Divided jobs stay. No member is contacted here.
"""

from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from fleet.db import isolation
from fleet.models import Cluster, NodeExclusion, Pod
from fleet.services.clusters import node_exclusions
from jobs.core.failover.rules import Outcome, PurgeMode
from jobs.core.reasons import Code, Reason
from jobs.models import Job
from jobs.services.failover import eviction_rate, failover
from jobs.services.lifecycle.locks import lock_jobs
from jobs.snapshot import LIVE


@dataclass(frozen=True, slots=True)
class NodeJobs:
    """The jobs that have pods on a node."""

    leaving: list[Job] = field(default_factory=list)
    """Those that leave it when it is drained, the first in rank first."""
    staying: list[Job] = field(default_factory=list)
    """Divided jobs."""


def jobs_on(cluster: Cluster, node: str) -> NodeJobs:
    there = Pod.objects.filter(cluster=cluster, node=node, phase__in=LIVE)
    rows = Job.objects.filter(deleting_at__isnull=True, suspended=False, uid__in=there.values("job_uid"))
    whole = rows.filter(shares=[], **_here(cluster)).filter(Exists(_of_attempt(there)))
    divided = rows.exclude(shares=[]).exclude(state__in=Job.FINISHED)
    return NodeJobs(_ranked(whole), _ranked(divided))


def move(now: datetime) -> int:
    """Makes the jobs leave that may leave now, and returns how many have."""
    return sum(isolation.each("failover.drained_nodes", node_exclusions.draining(), partial(_move_from, now=now), now))


def _move_from(drain: NodeExclusion, now: datetime) -> int:
    if drain.cluster.state != Cluster.State.READY:
        return 0  # what is known of its pods may be old, and its taints decide
    leaving = jobs_on(drain.cluster, drain.node).leaving
    return sum(isolation.each("failover.leave_drained", leaving, partial(_leave, drain=drain, now=now), now))


@transaction.atomic
def _leave(job: Job, drain: NodeExclusion, now: datetime) -> bool:
    """Unless it was moved meanwhile, the drain has ended, or too many jobs have left within the minute."""
    rows = Job.objects.filter(pk=job.pk, attempt=job.attempt, shares=[], suspended=False, deleting_at__isnull=True)
    if not lock_jobs(rows.filter(**_here(drain.cluster))):
        return False
    if not NodeExclusion.objects.filter(pk=drain.pk, drains=True, ended_at__isnull=True).exists():
        return False
    if not eviction_rate.allow(drain.cluster, now):
        return False
    reason = Reason(Code.WAITING_FOR_SCHEDULER, f"node {drain.node} of {drain.cluster.name} is drained")
    return failover.leave(job, Outcome.DRAINED, reason, now, purge=PurgeMode.DIRECTLY)


def _here(cluster: Cluster) -> dict[str, object]:
    return {"cluster": cluster, "state__in": Job.ON_MEMBER}


def _of_attempt(pods: QuerySet[Pod]) -> QuerySet[Pod]:
    return pods.filter(job_uid=OuterRef("uid"), attempt=OuterRef("attempt"))


def _ranked(rows: QuerySet[Job]) -> list[Job]:
    return list(rows.select_related("policy", "cluster").order_by("-priority", "pk"))
