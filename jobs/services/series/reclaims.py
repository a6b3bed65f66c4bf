"""The spot pools of a cluster, and the reclaims of its nodes that pods were given notice of, as long as their jobs are kept."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.core import devices
from fleet.core.members import spot
from fleet.models import Cluster, Node, Pod
from jobs.models import Attempt, Job, Notice
from jobs.runtime.reclaims import NoticeOfPod, Reclaim, of_notices

KEPT = timedelta(days=30)
AHEAD = timedelta(hours=1)
"""By which the clock of a member may be. Later ones are no times: as the latest they would be in the way of all others."""
MOST_NOTICES = 5_000
"""Of one cluster, the latest: they are in memory at once."""
Key = tuple[int, int]


@dataclass(slots=True)
class Pool:
    """Nodes that their provider may take back."""

    name: str
    nodes: int = 0
    ready: int = 0
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class Spot:
    pools: Sequence[Pool]
    reclaims: Sequence[Reclaim]
    pool_of: Mapping[str, str]
    """By node; of a node that is gone it is not known."""
    jobs: Mapping[int, Job]


def of_cluster(cluster: Cluster, now: datetime) -> Spot:
    """Its pools and the reclaims of the last 30 days, the latest first. Five queries."""
    nodes = list(Node.objects.filter(cluster=cluster).order_by("name").only("name", "labels", "ready", "allocatable"))
    notices = Notice.objects.filter(cluster_name=cluster.name, at__range=(now - KEPT, now + AHEAD)).exclude(node="")
    rows = list(notices.order_by("-at", "-pk")[:MOST_NOTICES])
    columns = ("pk", "uid", "kind", "namespace", "name", "roles")
    jobs = Job.objects.filter(pk__in={row.job_id for row in rows}).only(*columns).in_bulk()
    pool_of = {node.name: pool for node in nodes if (pool := spot.pool_of(node.labels))}
    return Spot(_pools(nodes, pool_of), of_notices(_facts(rows, jobs), now), pool_of, jobs)


def _pools(nodes: Iterable[Node], pool_of: Mapping[str, str]) -> list[Pool]:
    pools = dict[str, Pool]()
    for node in nodes:
        if (name := pool_of.get(node.name)) is not None:
            pool = pools.setdefault(name, Pool(name))
            pool.nodes += 1
            pool.ready += node.ready
            pool.gpus += devices.count(node.allocatable)
    return sorted(pools.values(), key=lambda pool: pool.name)


def _facts(rows: Sequence[Notice], jobs: Mapping[int, Job]) -> list[NoticeOfPod]:
    began, roles = _starts(rows), _roles(jobs)
    return [
        NoticeOfPod(
            row.job_id, row.attempt, row.pod, row.node, row.cause, row.at, row.deadline, row.heard_at,
            row.left_at or row.stopped_at, row.saved_step, _gpus(jobs[row.job_id], row.pod, roles),
            began.get((row.job_id, row.attempt)), row.until,
        )
        for row in rows
        if row.job_id in jobs
    ]  # fmt: skip


def _starts(rows: Sequence[Notice]) -> dict[Key, datetime]:
    attempts = Attempt.objects.filter(job__in={row.job_id for row in rows}, started_at__isnull=False).order_by()
    starts = attempts.values_list("job_id", "number", "started_at")
    return {(job, number): at for job, number, at in starts if at is not None}


def _roles(jobs: Mapping[int, Job]) -> Mapping[tuple[object, str], str]:
    """By job and name the role of the pods that are there still."""
    rows = Pod.objects.filter(job_uid__in=[job.uid for job in jobs.values()]).order_by()
    return {(uid, name): role for uid, name, role in rows.values_list("job_uid", "name", "role")}


def _gpus(job: Job, pod: str, roles: Mapping[tuple[object, str], str]) -> int:
    """What the pod asked: by its role, which the names of pods that are gone say."""
    requests: dict[str, Mapping[str, int]] = defaultdict(dict, {role["name"]: role["request"] for role in job.roles})
    named = [role for role in requests if f"-{role.lower()}-" in pod.removeprefix(job.name)]
    default = named[0] if named else next(iter(requests), "")
    return devices.count(requests[roles.get((job.uid, pod)) or default])
