"""Which jobs would leave a cluster that were lost or drained, and which would wait for it. Only looks.

The rules are those of `jobs.services.failover.returns`, asked about a taint that is not there. A job whose policy tolerates
the taint for good stays. A policy may say that its jobs wait for a cluster that does not answer; to drain that cluster
says that its copies run no more.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from fleet.core import tags
from fleet.core.members.health import UNREACHABLE_TAINT
from fleet.errors import NotFound
from fleet.models import Cluster, Pod
from fleet.services.clusters import node_exclusions
from jobs import snapshot
from jobs.core.failover.rules import leaves_cluster_at
from jobs.core.gang.types import Gang
from jobs.core.policies.unreachable import UNREACHABLE, Unreachable
from jobs.core.reasons import Amounts, Code, Reason
from jobs.core.taints import Taint
from jobs.models import Job
from jobs.services.failover import drained_nodes
from jobs.services.lifecycle.copies.fences import Fence
from jobs.snapshot import LIVE

_LOST, _DRAINED = Taint(UNREACHABLE_TAINT, "NoExecute"), Taint(*tags.DRAIN)


@dataclass(frozen=True, slots=True)
class Departures:
    leaving: Mapping[int, Gang] = field(default_factory=dict)
    """By the job's primary key."""
    staying: Mapping[int, Reason] = field(default_factory=dict)
    """Jobs that would wait for the cluster, with the reason they would have."""
    freed: Mapping[str, Amounts] = field(default_factory=dict)
    """By node, what those that leave have there."""


def of_lost(name: str) -> Departures:
    cluster, jobs = _on(name, _LOST)
    fence = Fence(cluster)
    waiting = {} if cluster.drained else {job.pk: _reason(job, name) for job in jobs if _would_wait(job, fence)}
    return Departures(_gangs([job for job in jobs if job.pk not in waiting]), waiting)


def _would_wait(job: Job, fence: Fence) -> bool:
    spec = snapshot.spec_of(job)
    if spec.unreachable is Unreachable.REPLACE or not fence.may_have_copy(job):
        return False
    return fence.over_at(job, spec) is None


def _reason(job: Job, cluster: str) -> Reason:
    policy = snapshot.spec_of(job).unreachable
    no_agent = ", which no agent there is known to stop" if policy is Unreachable.FENCE else ""
    return Reason(
        Code.WAITING_FOR_CLUSTER,
        f"{cluster} would not answer, and the policy says {UNREACHABLE}: {policy}: no other copy is started while the one there"
        f" may run{no_agent}; draining or detaching {cluster} moves it",
    )


def of_drained(name: str) -> Departures:
    return Departures(_gangs(_on(name, _DRAINED)[1]))


def of_drained_node(name: str, node: str) -> Departures:
    """Of the jobs that have pods on the node, with all that they have on the nodes of the cluster."""
    cluster = _cluster(name)
    node_exclusions.labels_of(cluster, node)
    jobs = drained_nodes.leaving_from(cluster, node)
    requests = {(job.uid, role["name"]): role["request"] for job in jobs for role in job.roles}
    pods = Pod.objects.filter(cluster=cluster, job_uid__in=[job.uid for job in jobs], phase__in=LIVE).exclude(node="")
    freed: dict[str, Counter[str]] = defaultdict(Counter)
    for uid, role, there in pods.values_list("job_uid", "role", "node"):
        freed[there].update(requests.get((uid, role), {}))
    return Departures(_gangs(jobs), freed=freed)


def _on(name: str, taint: Taint) -> tuple[Cluster, list[Job]]:
    """The cluster, and the jobs on it that do not tolerate the taint for good."""
    cluster = _cluster(name)
    rows = Job.objects.filter(cluster=cluster, state__in=Job.ON_MEMBER, deleting_at__isnull=True)
    jobs = rows.select_related("policy")
    return cluster, [job for job in jobs if leaves_cluster_at([taint], snapshot.spec_of(job).tolerations, 0.0)]


def _cluster(name: str) -> Cluster:
    cluster = Cluster.objects.defer("access").filter(name=name).first()
    if cluster is None:
        raise NotFound(f"there is no cluster {name}")
    return cluster


def _gangs(jobs: list[Job]) -> Mapping[int, Gang]:
    gangs = snapshot.load_gangs(Job.objects.filter(pk__in=[job.pk for job in jobs])) if jobs else []
    return {gang.job_id: gang for gang in gangs}
