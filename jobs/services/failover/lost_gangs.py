"""Makes jobs leave lost nodes, each at once and as a whole: until their member evicts the pods there, no process ends.

What stays, and why, is said in the job's timeline: where the policy moves no unhealthy job or waits for what does not answer,
where the author has the pods stay on such nodes, and where the copy goes on with the pods that are left. Divided jobs stay too.
No member is contacted here.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import Count, QuerySet

from fleet.core.members.freshness import CURRENT
from fleet.db import clock, isolation, prepared
from fleet.models import Cluster, Event, Node, Pod
from jobs.core.failover.causes import Cause, Failure
from jobs.core.failover.rules import Outcome, PurgeMode
from jobs.core.gang import requirements
from jobs.core.policies.unreachable import UNREACHABLE, Unreachable
from jobs.core.reasons import Code, Reason
from jobs.core.taints import Taint, tolerated_for
from jobs.events import record_event
from jobs.kinds import registry
from jobs.models import Job
from jobs.services.failover import eviction_rate, evidence, failover, lost_nodes, node_faults
from jobs.services.failover.lost_nodes import LostNode
from jobs.services.lifecycle.locks import lock_jobs
from jobs.snapshot import LIVE, spec_of

NODE_LOST = "NodeLost"
"""Reason of the event of a job that stays."""
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Loss:
    """What a job has on nodes that are not ready."""

    job: Job
    nodes: Mapping[str, LostNode]
    pods: list[Pod]
    """Those there that have not ended."""
    left: Mapping[str, int]
    """By role, the others that have not failed."""

    def __str__(self) -> str:
        names, since = sorted(self.nodes), min(node.since for node in self.nodes.values())
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        nodes = f"node{'s' * (len(names) > 1)} {', '.join(names[:_MOST_NAMED])}{more} of {self.job.cluster}"
        have = "have" if len(names) > 1 else "has"
        return f"{nodes}, where it has pods, {have} not been ready since {since:%Y-%m-%d %H:%M:%S} UTC"


def exist() -> bool:
    """Whether pods are on nodes that may become lost by the clock, or are."""
    return bool(_ANY_ON_NODES_DOWN.values())


def _on_nodes_down() -> QuerySet[Pod]:
    down = Node.objects.filter(ready=False).order_by()
    return Pod.objects.filter(cluster__in=down.values("cluster"), node__in=down.values("name"), phase__in=LIVE)


_ANY_ON_NODES_DOWN = prepared.Rows(lambda _: _on_nodes_down().order_by().values_list("pk")[:1])


def move(now: datetime) -> int:
    """Makes the jobs leave that must, and returns how many have."""
    return sum(isolation.each("failover.lost_nodes", _CONCERNED.objects(), partial(_move_from, now=now), now))


def _concerned() -> QuerySet[Cluster]:
    down = Node.objects.filter(ready=False).order_by()
    return Cluster.objects.filter(pk__in=down.values("cluster"), state=Cluster.State.READY).defer("access")


_CONCERNED = prepared.Rows(lambda _: _concerned())


def _move_from(cluster: Cluster, now: datetime) -> int:
    began = clock.now()
    losses = {loss.job: loss for loss in _losses(cluster, lost_nodes.of(cluster, now))}
    judged = isolation.each("failover.lost_gangs", losses, lambda job: (job, why_it_stays(losses[job], now)), now)
    _record({job: f"{losses[job]}: it stays, because {why}" for job, why in judged if why}, now)
    leaving = [job for job, why in judged if not why]
    return sum(isolation.each("failover.leave_lost", leaving, lambda job: _leave(losses[job], now, began), now))


def describe(job: Job, now: datetime) -> str:
    """What is to be added to the account of a job that is placed; empty: no node of it is down."""
    if job.cluster is None or job.state not in Job.ON_MEMBER:
        return ""
    least = settings.CONVOY_FAILOVER.lost_node_s
    for loss in _losses(job.cluster, lost_nodes.not_ready(job.cluster), job):
        if why := why_it_stays(loss, now):
            return f"; {loss}: it stays, because {why}"
        if lost_nodes.are_most(job.cluster):
            return f"; {loss}, like more than half of its nodes: none of them counts as lost"
        if job.cluster.state != Cluster.State.READY:
            return f"; {loss}: nothing is decided about them while {job.cluster} is {job.cluster.state}"
        if job.cluster.freshness.is_stale(now, CURRENT):
            return f"; {loss}: nothing is decided about them until {job.cluster} is seen again"
        is_lost = bool(loss.nodes.keys() & lost_nodes.of(job.cluster, now).keys())
        why_later = eviction_rate.why_later(job.cluster, now) if is_lost else ""
        return f"; {loss}: it leaves them{f'; {why_later}' if why_later else f' once that has lasted {least:g} s'}"
    return ""


def why_it_stays(loss: Loss, now: datetime) -> str:
    """Empty: it leaves."""
    job, spec = loss.job, spec_of(loss.job)
    if spec.application_toleration_s is None:
        return "its policy has no failover.application"
    if spec.unreachable is not Unreachable.REPLACE:
        return f"its policy says {UNREACHABLE}: {spec.unreachable}"
    sizes, kind = {role["name"]: role["replicas"] for role in job.roles}, registry.kind_of(job.api_version, job.kind)
    roles = {pod.role for pod in loss.pods}
    short = {role for role in roles if role not in sizes or loss.left.get(role, 0) < sizes[role]}
    if not short:
        return "others have taken the place of these pods"
    lost = {role: {pod.index for pod in loss.pods if pod.role == role} for role in short}
    if all(kind.goes_on_without(job.manifest, role, loss.left.get(role, 0), lost[role]) for role in short):
        return "it goes on with the pods that are left"
    return _tolerates(loss, now)


def _tolerates(loss: Loss, now: datetime) -> str:
    """Whether its author has said for these very taints that the pods stay, in words; empty: not, or no longer.

    A toleration of all taints is commonly meant for GPUs, and says nothing of lost nodes.
    """
    asks = {role["name"]: requirements.ask_of_stored(role) for role in loss.job.roles}
    ends = set()
    for role, name in {(pod.role, pod.node) for pod in loss.pods}:
        node = loss.nodes[name]
        stated = [t for t in asks[role].tolerations if t.key == node.taint] if role in asks else []
        ends.add(tolerated_for(Taint(node.taint, "NoExecute", added_at=node.since), stated, 0.0))
    over = min((at for at in ends if at is not None), default=None)
    if over is None:
        return "its pods tolerate such nodes for good"
    return f"its pods tolerate such nodes until {over:%Y-%m-%d %H:%M:%S} UTC" if over > now else ""


def _losses(cluster: Cluster, nodes: Mapping[str, LostNode], only: Job | None = None) -> list[Loss]:
    """Of all jobs that run there, or of one; in a fixed number of queries."""
    live = Pod.objects.filter(cluster=cluster, phase__in=LIVE, node__in=nodes) if nodes else Pod.objects.none()
    live = live if only is None else live.filter(job_uid=only.uid)
    there: dict[tuple[object, int], list[Pod]] = defaultdict(list)
    for pod in live.order_by("name"):
        there[pod.job_uid, pod.attempt].append(pod)
    rows = Job.objects.filter(uid__in={uid for uid, _ in there}, cluster=cluster, shares=[], state__in=Job.ON_MEMBER)
    rows = rows.filter(suspended=False, deleting_at__isnull=True).select_related("policy", "cluster")
    rows = rows.order_by("-priority", "pk")
    jobs = [job for job in rows if (job.uid, job.attempt) in there] if there else []
    left = _elsewhere(cluster, nodes, jobs)
    return [
        Loss(job, {pod.node: nodes[pod.node] for pod in pods}, pods, left[job.uid, job.attempt])
        for job in jobs
        for pods in [there[job.uid, job.attempt]]
    ]


def _elsewhere(cluster: Cluster, nodes: Collection[str], jobs: Iterable[Job]) -> dict[tuple[object, int], Counter[str]]:
    """By attempt and role, how many pods are on other nodes, or on none yet, and have not failed."""
    uids = [job.uid for job in jobs]
    pods = Pod.objects.filter(cluster=cluster, job_uid__in=uids).exclude(node__in=nodes).exclude(phase="Failed")
    counted = pods.order_by().values_list("job_uid", "attempt", "role").annotate(Count("pk")) if uids else []
    left: dict[tuple[object, int], Counter[str]] = defaultdict(Counter)
    for uid, attempt, role, count in counted:
        left[uid, attempt][role] = count
    return left


@transaction.atomic
def _leave(loss: Loss, now: datetime, began: datetime) -> bool:
    """Unless it was moved since the pass ``began``, its nodes no longer count as lost, or too many jobs have left."""
    job = loss.job
    rows = Job.objects.filter(pk=job.pk, attempt=job.attempt, cluster=job.cluster, state__in=Job.ON_MEMBER)
    if not lock_jobs(rows.filter(suspended=False, deleting_at__isnull=True)):
        return False
    now += max(clock.now() - began, timedelta())  # the pass may have been interrupted for long
    cluster = Cluster.objects.get(pk=loss.pods[0].cluster_id)
    lost = lost_nodes.of(cluster, now)
    still = all(name in lost and lost[name].since == node.since for name, node in loss.nodes.items())
    if not still or not eviction_rate.allow(cluster, now):
        return False
    # Before the attempt is closed, which looks at the pods and at their nodes itself: these are what it leaves for.
    ends = tuple(evidence.pod_end(pod, node_ready=False) for pod in loss.pods)
    failure = Failure(Cause.INFRASTRUCTURE, ends)
    evidence.record(job, job.attempt, failure, now)
    node_faults.shown_by_member(job, job.attempt, failure, now)  # of an attempt whose cause was known before, too
    keeps = job.state == Job.State.BACKOFF and spec_of(job).application_purge is PurgeMode.NEVER
    reason = Reason(Code.APPLICATION_UNHEALTHY, str(loss))
    purge = PurgeMode.NEVER if keeps else PurgeMode.DIRECTLY
    return failover.leave(job, Outcome.FAILED, reason, now, purge=purge)


def _record(messages: Mapping[Job, str], now: datetime) -> None:
    """Adds the event to the timelines, once for each time that the nodes are lost."""
    uids = [str(job.uid) for job in messages]
    stored = Event.objects.filter(regarding_uid__in=uids, reason=NODE_LOST).values_list("regarding_uid", "message")
    known = set(stored) if uids else set()
    for job, message in messages.items():
        if (str(job.uid), message) not in known:
            record_event(job, NODE_LOST, message, now, warning=True)
