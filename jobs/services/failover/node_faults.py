"""Reports the nodes that failed attempts to the ledger of nodes, so that a replacement does not land there.

What the member shows (a lost node, a pod that its node refused) excludes the node for the job and counts for everyone. What
only the log of a job shows excludes it for that job: a tenant writes the log.
"""

from collections.abc import Iterable
from datetime import datetime

from django.conf import settings

from fleet.core.node_exclusions import ExclusionReason
from fleet.models import Cluster, Node
from fleet.services.clusters import node_exclusions
from fleet.services.clusters.node_exclusions import Fault
from jobs.core.failover.causes import Failure
from jobs.core.failover.diagnosis import Diagnosis
from jobs.core.failover.symptoms import Symptom
from jobs.events import record_event
from jobs.models import Attempt, Job

_RECLAIM = "convoy.dev/reclaim"
"""Taint of a node that its provider takes back: it leaves as announced, and is not at fault."""


def shown_by_member(job: Job, attempt: int, failure: Failure, now: datetime) -> None:
    """Excludes the nodes that failed the attempt for the job, and counts their fault for everyone."""
    nodes = sorted({pod.node_at_fault for pod in failure.evidence} - {""})
    cluster = _cluster_of(job, attempt) if nodes else None
    if cluster is None:
        return
    nodes = sorted(set(nodes) - _reclaimed(cluster, nodes))
    for node in nodes:
        fault = _fault(job, attempt, ExclusionReason.INFRASTRUCTURE, "the node failed", now)
        node_exclusions.count(cluster, node, fault, now)
    _exclude(job, attempt, cluster, nodes, ExclusionReason.INFRASTRUCTURE, "the node failed", now)


def shown_by_log(job: Job, attempt: int, diagnosis: Diagnosis, now: datetime) -> None:
    """Excludes the node for the job if its log shows a fault of hardware there. A node that the member has shown is known."""
    node = diagnosis.node_at_fault
    cluster = _cluster_of(job, attempt) if node else None
    if cluster is None or diagnosis.finding is None:
        return
    if Node.objects.filter(cluster=cluster, name=node).exists():
        is_check = diagnosis.finding.symptom is Symptom.NODE_CHECK
        reason = ExclusionReason.NODE_CHECK if is_check else ExclusionReason.GPU_FAULT
        _exclude(job, attempt, cluster, [node], reason, diagnosis.message, now)


def shown_by_check(job: Job, attempt: int, node: str, why: str, now: datetime, *, is_slow: bool) -> None:
    """Excludes the node for the job because the check of its runtime found it faulty or slow."""
    cluster = _cluster_of(job, attempt)
    if cluster is not None and Node.objects.filter(cluster=cluster, name=node).exists():
        reason = ExclusionReason.STRAGGLER if is_slow else ExclusionReason.NODE_CHECK
        _exclude(job, attempt, cluster, [node], reason, why, now)


def _exclude(
    job: Job, attempt: int, cluster: Cluster, nodes: Iterable[str], reason: ExclusionReason, why: str, now: datetime
) -> None:
    for node in nodes:
        fault = _fault(job, attempt, reason, f"attempt {attempt} failed there: {why}", now)
        if node_exclusions.report(cluster, node, fault, now, job.uid):
            hours = settings.CONVOY_NODE_EXCLUSIONS.first_lease_s / 3600
            message = f"node {node} of {cluster.name} is excluded for this job for {hours:g} h or more: {why}"
            record_event(job, "NodeExcluded", message[:1024], now, warning=True)


def _fault(job: Job, attempt: int, reason: ExclusionReason, why: str, now: datetime) -> Fault:
    return Fault(f"{job.uid}/{attempt}", now, reason, why, {"job": f"{job.namespace}/{job.name}", "attempt": attempt})


def _cluster_of(job: Job, attempt: int) -> Cluster | None:
    name = Attempt.objects.filter(job=job, number=attempt).values_list("cluster_name", flat=True).first()
    return Cluster.objects.filter(name=name).first() if name else None


def _reclaimed(cluster: Cluster, nodes: Iterable[str]) -> set[str]:
    rows = Node.objects.filter(cluster=cluster, name__in=nodes).values_list("name", "taints")
    return {name for name, taints in rows if any(taint.get("key") == _RECLAIM for taint in taints)}
