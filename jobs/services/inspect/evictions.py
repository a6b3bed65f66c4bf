"""How far the jobs of a drained or lost cluster, or of a drained node, have left it, and how fast they leave. Only looks."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.models import Cluster
from fleet.services.clusters import node_exclusions
from jobs.core.failover.rules import Outcome
from jobs.models import Attempt, Job, Work
from jobs.services.failover import drained_nodes, eviction_rate
from jobs.services.lifecycle.works import IN_MEMBER

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Evictions:
    cluster: str
    drained: bool
    jobs_left: int
    """Jobs that run there, or have a share there, and have not left it."""
    copies_left: int
    """Copies of unfinished jobs there, also of those that have left and whose copy is not removed yet."""
    left_last_minute: int
    per_minute: int
    """How many may leave within a minute."""

    @property
    def minutes_left(self) -> int:
        """At the pace allowed; a job that tolerates the taint longer, or has no other place, takes longer."""
        return -(-self.jobs_left // self.per_minute)


@dataclass(frozen=True, slots=True)
class NodeEvictions:
    cluster: str
    node: str
    drained: bool
    leaving: list[Job]
    """Jobs that have pods there and leave it, or would if it were drained."""
    staying: list[Job]
    """Divided jobs, which a drain of the node does not move."""
    pods_left: int
    """Pods of jobs there that have not ended, also of jobs that have left it: only without any is the node empty."""
    per_minute: int

    @property
    def minutes_left(self) -> int:
        """At the pace allowed."""
        return -(-len(self.leaving) // self.per_minute)


def of_node(cluster: Cluster, node: str) -> NodeEvictions:
    node_exclusions.labels_of(cluster, node)
    drains = node_exclusions.draining().filter(cluster=cluster, node=node)
    there = drained_nodes.jobs_on(cluster, node)
    return NodeEvictions(
        cluster=cluster.name,
        node=node,
        drained=drains.exists(),
        leaving=there.leaving,
        staying=there.staying,
        pods_left=drained_nodes.pods_on(cluster, node).count(),
        per_minute=eviction_rate.limit_of(cluster),
    )


def of_cluster(cluster: Cluster, now: datetime) -> Evictions:
    live = Job.objects.exclude(state__in=Job.FINISHED).filter(deleting_at__isnull=True)
    copies = Work.objects.filter(cluster=cluster, state__in=IN_MEMBER)
    standing = copies.filter(state__in=(Work.State.SENDING, Work.State.APPLIED)).values("job_uid")
    divided = live.exclude(shares=[]).filter(uid__in=standing).count()
    whole = live.filter(cluster=cluster, shares=[], state__in=Job.ON_MEMBER).count()
    left = Attempt.objects.filter(cluster_name=cluster.name, outcome__in=(Outcome.LOST, Outcome.DRAINED))
    left = left.filter(ended_at__gt=now - _MINUTE, ended_at__lte=now)
    return Evictions(
        cluster=cluster.name,
        drained=cluster.drained,
        jobs_left=whole + divided,
        copies_left=copies.filter(job_uid__in=live.values("uid")).count(),
        left_last_minute=left.count(),
        per_minute=eviction_rate.limit_of(cluster),
    )
