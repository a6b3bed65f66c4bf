"""Decides which failed attempts belong to one incident, by what they have in common: a cluster, its nodes, or the job itself.

An incident is one cause and everything that follows from it. Attempts that a cluster lost belong to the time in which it was
lost; those that lost a node, were evicted, or were deleted in the member belong together if they follow closely on one
another; failures of a program belong to their job. No I/O.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from jobs.core.failover.causes import Cause
from jobs.core.failover.rules import Outcome


class IncidentKind(StrEnum):
    CLUSTER_SILENT = "ClusterSilent"
    """The cluster does not answer."""
    CLUSTER_UNHEALTHY = "ClusterUnhealthy"
    """The cluster answers, and says that it is not ready."""
    CREDENTIALS = "CredentialsRefused"
    """The cluster refuses our credentials, or they cannot be read: it cannot be seen, and its jobs stay."""
    DISRUPTION = "DisruptionSuspected"
    """So many clusters fell silent together that the fault is likely ours: its jobs stay."""
    CLUSTER_DRAINED = "ClusterDrained"
    CLUSTER_TAINTED = "ClusterTainted"
    """Jobs left a cluster that answered, for a taint that a person gave it."""
    CLUSTER_DETACHED = "ClusterDetached"
    NODE_LOST = "NodeLost"
    PODS_EVICTED = "PodsEvicted"
    """The member evicted pods: node pressure, a taint, a preemption or a drain of its own."""
    COPIES_REMOVED = "CopiesRemoved"
    """Copies were deleted in the member by another client."""
    REFUSED = "MemberRefused"
    JOB_FAILED = "JobFailed"
    """The program ended with an error, ran out of memory, or did not start."""


OUTAGES = frozenset(
    {
        IncidentKind.CLUSTER_SILENT, IncidentKind.CLUSTER_UNHEALTHY, IncidentKind.CREDENTIALS, IncidentKind.DISRUPTION,
    }
)  # fmt: skip
"""Kinds that last as long as the cluster is not Ready, whether or not a job suffers."""
WINDOW = timedelta(minutes=10)
"""A failure that follows this much later on the last one is another incident."""

_OF_REASON = {
    "CredentialsRefused": IncidentKind.CREDENTIALS,
    "CredentialsUnreadable": IncidentKind.CREDENTIALS,
    "DisruptionSuspected": IncidentKind.DISRUPTION,
}
_OF_CAUSE = {
    Cause.INFRASTRUCTURE: IncidentKind.NODE_LOST,
    Cause.EVICTED: IncidentKind.PODS_EVICTED,
    Cause.REMOVED: IncidentKind.COPIES_REMOVED,
    Cause.REFUSED: IncidentKind.REFUSED,
}
OF_JOB = "job/"
"""Begins the subject of an incident that is about a single job; its uid follows."""
_OF_THE_JOB = frozenset({IncidentKind.REFUSED, IncidentKind.JOB_FAILED})


@dataclass(frozen=True, slots=True)
class Failed:
    """A failed attempt, with what decides where it belongs."""

    job: str
    """The uid of its job."""
    cluster: str
    outcome: str
    cause: str
    nodes: tuple[str, ...] = ()
    """The nodes in its evidence that were lost."""


def outage_kind(*, answers: bool, reason: str) -> IncidentKind:
    """The kind of a cluster that is not Ready, by whether it answers and the reason of its state."""
    silent = IncidentKind.CLUSTER_UNHEALTHY if answers else IncidentKind.CLUSTER_SILENT
    return _OF_REASON.get(reason, silent)


def kind_of(failed: Failed) -> IncidentKind | None:
    """The kind that a failed attempt shows by itself. None: its cluster was lost, and the cluster says how."""
    if failed.outcome == Outcome.LOST:
        return None
    cause = Cause(failed.cause) if failed.cause in set(Cause) else Cause.UNKNOWN
    return _OF_CAUSE.get(cause, IncidentKind.JOB_FAILED)


def subject_of(kind: IncidentKind, failed: Failed) -> str:
    """What an incident of this kind is about: attempts with the same subject may belong to the same incident."""
    if kind in _OF_THE_JOB:
        return f"{OF_JOB}{failed.job}"
    if kind is IncidentKind.NODE_LOST and failed.nodes:
        return f"node/{failed.cluster}/{min(failed.nodes)}"
    return f"{kind}/{failed.cluster}"


def outage_subject(cluster: str) -> str:
    return f"outage/{cluster}"
