"""Makes jobs leave the nodes that a person drains, each as a whole and within the eviction rate of the cluster.

The node itself takes no pods: it is excluded for everyone (`fleet.services.clusters.node_exclusions`). A copy is removed before
its replacement is placed, since that may need the other nodes of the copy. Divided jobs stay. Nothing is decided by what was
observed a while ago. No member is contacted here.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import takewhile

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from fleet.core.members.freshness import CURRENT
from fleet.db import clock, isolation, prepared
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
    rows = Job.objects.filter(deleting_at__isnull=True, suspended=False)
    divided = rows.filter(uid__in=pods_on(cluster, node).values("job_uid"))
    divided = divided.exclude(shares=[]).exclude(state__in=Job.FINISHED)
    return NodeJobs(leaving_from(cluster, node), _ranked(divided))


def leaving_from(cluster: Cluster, node: str) -> list[Job]:
    """The jobs that leave the node when it is drained, the first in rank first."""
    there = pods_on(cluster, node)
    whole = _movable().filter(cluster=cluster, uid__in=there.values("job_uid"))
    return _ranked(whole.filter(Exists(there.filter(job_uid=OuterRef("uid"), attempt=OuterRef("attempt")))))


def pods_on(cluster: Cluster, node: str) -> QuerySet[Pod]:
    """Pods of jobs that have not ended, also of those that have left the node: while one is stopped it may save its work."""
    return Pod.objects.filter(cluster=cluster, node=node, phase__in=LIVE)


@dataclass(frozen=True, slots=True)
class _Pass:
    begins: datetime
    began: datetime
    """By the clock of this process."""
    limited: set[int] = field(default_factory=set)
    """Clusters that no more jobs may leave within the minute."""

    @property
    def now(self) -> datetime:
        """It may have been interrupted for long."""
        return self.begins + max(clock.now() - self.began, timedelta())


def move(now: datetime) -> int:
    """Makes the jobs leave that may leave now, and returns how many have."""
    this = _Pass(now, clock.now())
    return sum(isolation.each("failover.drained_nodes", _CONCERNED.objects(), partial(_move_from, this=this), now))


def _concerned() -> QuerySet[NodeExclusion]:
    """Drained nodes that some job has to leave."""
    pods = Pod.objects.filter(cluster=OuterRef("cluster"), node=OuterRef("node"), phase__in=LIVE)
    jobs = _movable().filter(uid=OuterRef("job_uid"), attempt=OuterRef("attempt"), cluster=OuterRef("cluster"))
    return node_exclusions.draining().filter(Exists(pods.filter(Exists(jobs))))


_CONCERNED = prepared.Rows(lambda _: _concerned())


def _move_from(drain: NodeExclusion, this: _Pass) -> int:
    if drain.cluster_id in this.limited or not _is_current(drain.cluster, this.now):
        return 0
    leaving = leaving_from(drain.cluster, drain.node)
    allowed = takewhile(lambda _: drain.cluster_id not in this.limited, leaving)
    return sum(isolation.each("failover.leave_drained", allowed, partial(_leave, drain=drain, this=this), this.begins))


@transaction.atomic
def _leave(job: Job, drain: NodeExclusion, this: _Pass) -> bool:
    """Unless it or its pods were moved meanwhile, the drain has ended, or too many jobs have left within the minute."""
    if not lock_jobs(_movable().filter(pk=job.pk, attempt=job.attempt, cluster=drain.cluster_id)):
        return False
    row, now = node_exclusions.draining().filter(pk=drain.pk).first(), this.now
    if row is None or not _is_current(row.cluster, now):
        return False
    if not pods_on(row.cluster, row.node).filter(job_uid=job.uid, attempt=job.attempt).exists():
        return False
    if not eviction_rate.allow(row.cluster, now):
        this.limited.add(row.cluster_id)
        return False
    reason = Reason(Code.WAITING_FOR_SCHEDULER, f"node {row.node} of {row.cluster.name} is drained")
    return failover.leave(job, Outcome.DRAINED, reason, now, purge=PurgeMode.DIRECTLY)


def _is_current(cluster: Cluster, now: datetime) -> bool:
    """Whether what is known of its pods is of now. Where it does not answer, its taints decide."""
    return cluster.state == Cluster.State.READY and not cluster.freshness.is_stale(now, CURRENT)


def _movable() -> QuerySet[Job]:
    return Job.objects.filter(shares=[], suspended=False, deleting_at__isnull=True, state__in=Job.ON_MEMBER)


def _ranked(rows: QuerySet[Job]) -> list[Job]:
    return list(rows.select_related("policy", "cluster").order_by("-priority", "pk"))
