"""Determines why attempts failed from the rows of their pods and nodes, and stores it before the pods are deleted."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from uuid import UUID

from fleet.changes import events
from fleet.models import Node, Pod
from jobs.core.failover.causes import Cause, Failure, PodEnd, classify
from jobs.core.failover.rules import Outcome
from jobs.models import Attempt, Job
from jobs.services.failover import node_faults

Key = tuple[UUID, int]
"""A job's uid and the number of an attempt."""
_OF_OUTCOME: Mapping[Outcome, Cause] = {
    Outcome.LOST: Cause.INFRASTRUCTURE,
    Outcome.VANISHED: Cause.REMOVED,
    Outcome.REFUSED: Cause.REFUSED,
}
WEAK = ("", Cause.CODE_ERROR, Cause.DATA_ERROR, Cause.UNKNOWN)
"""Causes that later evidence may replace: a lost node is reported after pods on other nodes have failed because of it."""


_SHOWN_BY_PODS = frozenset({Cause.CODE_ERROR, Cause.OUT_OF_MEMORY, Cause.INFRASTRUCTURE, Cause.EVICTED, Cause.UNKNOWN})
"""Causes of which pods have more to say in their logs."""


def failures(keys: Collection[Key]) -> dict[Key, Failure]:
    """The cause of each failed attempt, from the current rows of its pods and their nodes, in two queries."""
    rows = [
        pod for pod in Pod.objects.filter(job_uid__in={uid for uid, _ in keys}) if (pod.job_uid, pod.attempt) in keys
    ]
    nodes = Node.objects.filter(cluster__in={pod.cluster_id for pod in rows}, name__in={pod.node for pod in rows})
    ready = {(cluster, name): is_ready for cluster, name, is_ready in nodes.values_list("cluster", "name", "ready")}
    pods: dict[Key, list[PodEnd]] = defaultdict(list)
    for pod in rows:
        pods[pod.job_uid, pod.attempt].append(pod_end(pod, ready.get((pod.cluster_id, pod.node))))
    return {key: classify(pods[key]) for key in keys}


def pod_end(pod: Pod, node_ready: bool | None = None) -> PodEnd:
    return PodEnd(
        pod=pod.name,
        phase=pod.phase,
        reason=pod.reason,
        exit_code=pod.exit_code,
        disruption=pod.disruption,
        node=pod.node,
        node_ready=node_ready,
        restarts=pod.restarts,
        message=pod.message[:200],
    )


def record(job: Job, attempt: int, failure: Failure, now: datetime) -> None:
    """Stores the cause with the attempt, unless a cause with better evidence is stored already, and has the logs read."""
    attempts = Attempt.objects.filter(job=job, number=attempt)
    replaceable = ("",) if failure.cause in WEAK else WEAK
    due_at = now if failure.cause in _SHOWN_BY_PODS else None
    stored = {"cause": failure.cause, "evidence": failure.evidence_as_json() or None, "log_due_at": due_at}
    stored |= {"incident": None}  # another cause may belong to another incident
    if attempts.filter(cause__in=replaceable).update(**stored) and due_at:
        node_faults.shown_by_member(job, attempt, failure, now)
        events.enqueue("jobs.diagnose", str(job.uid), attempt)


def determine(job: Job, attempt: int, outcome: Outcome, now: datetime) -> str:
    """Stores the cause of an attempt that ends with this outcome, and returns it. Empty if the attempt has not failed.

    If the cause was stored when the failure was reported, that one is returned: the pods may no longer exist.
    """
    if outcome is Outcome.FAILED:
        record(job, attempt, failures([(job.uid, attempt)])[job.uid, attempt], now)
        return Attempt.objects.values_list("cause", flat=True).get(job=job, number=attempt)
    if outcome not in _OF_OUTCOME:
        return ""
    record(job, attempt, Failure(_OF_OUTCOME[outcome]), now)
    return _OF_OUTCOME[outcome]
