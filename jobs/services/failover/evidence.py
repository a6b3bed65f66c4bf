"""Why attempts failed, read from the rows of their pods and nodes, and kept with the attempt before the pods are gone."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from uuid import UUID

from fleet.models import Node, Pod
from jobs.core.failover.causes import Cause, Failure, PodEnd, classify
from jobs.core.failover.rules import Outcome
from jobs.models import Attempt, Job

Key = tuple[UUID, int]
"""A job's uid and the number of an attempt."""
_OF_OUTCOME: Mapping[Outcome, Cause] = {
    Outcome.LOST: Cause.INFRASTRUCTURE,
    Outcome.VANISHED: Cause.REMOVED,
    Outcome.REFUSED: Cause.REFUSED,
}
_WEAK = ("", Cause.CODE_ERROR, Cause.UNKNOWN)
"""Causes that better evidence replaces: a node is reported lost after the peers of its pods have failed."""


def failures(keys: Collection[Key]) -> dict[Key, Failure]:
    """The cause of each failed attempt by its pods as they are now, in two queries."""
    rows = [
        pod for pod in Pod.objects.filter(job_uid__in={uid for uid, _ in keys}) if (pod.job_uid, pod.attempt) in keys
    ]
    nodes = Node.objects.filter(cluster__in={pod.cluster_id for pod in rows}, name__in={pod.node for pod in rows})
    ready = {(cluster, name): is_ready for cluster, name, is_ready in nodes.values_list("cluster", "name", "ready")}
    pods: dict[Key, list[PodEnd]] = defaultdict(list)
    for pod in rows:
        pods[pod.job_uid, pod.attempt].append(_end_of(pod, ready.get((pod.cluster_id, pod.node))))
    return {key: classify(pods[key]) for key in keys}


def _end_of(pod: Pod, node_ready: bool | None) -> PodEnd:
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


def record(job: Job, attempt: int, failure: Failure) -> None:
    """Keeps the cause with the attempt, unless a stronger one is known."""
    attempts = Attempt.objects.filter(job=job, number=attempt)
    replaced = ("",) if failure.cause in _WEAK else _WEAK
    attempts.filter(cause__in=replaced).update(cause=failure.cause, evidence=failure.evidence_as_json() or None)


def note(job: Job, attempt: int, outcome: Outcome) -> str:
    """Records why an attempt ends with this outcome, and returns the cause; empty for one that has not failed.

    The cause of a failure may have been recorded when it was reported: its pods may be gone since.
    """
    if outcome is Outcome.FAILED:
        record(job, attempt, failures([(job.uid, attempt)])[job.uid, attempt])
        return Attempt.objects.values_list("cause", flat=True).get(job=job, number=attempt)
    if outcome not in _OF_OUTCOME:
        return ""
    record(job, attempt, Failure(_OF_OUTCOME[outcome]))
    return _OF_OUTCOME[outcome]
