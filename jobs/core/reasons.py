"""Why a job is where it is: one closed list of codes, each with amounts, the same in every door.

"Cannot be placed" is a value, not an exception. A reason names the resource, the amount short, and where (I7).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Amounts = Mapping[str, int]


class Code(StrEnum):
    # the job as a whole
    WAITING_FOR_SCHEDULER = "WaitingForScheduler"
    NO_POLICY = "NoPolicy"
    SCHEDULING_SUSPENDED = "SchedulingSuspended"
    SUSPENDED = "Suspended"
    QUOTA_EXCEEDED = "QuotaExceeded"
    MAX_JOBS_REACHED = "MaxJobsReached"
    NEVER_FITS = "NeverFits"
    BEHIND_IN_QUEUE = "BehindInQueue"
    QUEUE_HELD = "QueueHeld"
    BUDGET_SPENT = "BudgetSpent"
    WINDOW_AHEAD = "WindowAhead"
    NO_QUOTA_FOR_NAMESPACE = "NoQuotaForNamespace"
    WAITING_FOR_RECLAIM = "WaitingForReclaim"
    RECLAIMED = "Reclaimed"
    NO_CLUSTER = "NoCluster"
    NO_CLUSTER_FITS = "NoClusterFits"
    PLAN_REJECTED = "PlanRejected"
    WAITING_FOR_MEMBER = "WaitingForMember"
    WAITING_FOR_PURGE = "WaitingForPurge"
    WAITING_FOR_PODS = "WaitingForPods"
    MEMBER_REFUSED = "MemberRefused"
    APPLICATION_UNHEALTHY = "ApplicationUnhealthy"
    CLUSTER_LOST = "ClusterLost"
    WAITING_FOR_CLUSTER = "WaitingForCluster"
    COPY_VANISHED = "CopyVanished"
    ATTEMPTS_EXHAUSTED = "AttemptsExhausted"
    MAX_WAIT_EXCEEDED = "MaxWaitExceeded"
    MAX_RUNTIME_EXCEEDED = "MaxRuntimeExceeded"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    WAITING_FOR_JOB = "WaitingForJob"
    PREDECESSOR_FAILED = "PredecessorFailed"
    DELETING = "Deleting"
    FAILED = "Failed"
    # one cluster looked at, or the quota asked
    FITS = "Fits"
    NOT_SELECTED = "NotSelected"
    DATA_ELSEWHERE = "DataElsewhere"
    NOT_READY = "NotReady"
    CORDONED = "Cordoned"
    CAPACITY_UNKNOWN = "CapacityUnknown"
    UNTOLERATED_TAINT = "UntoleratedTaint"
    KIND_NOT_SERVED = "KindNotServed"
    SCHEDULER_NOT_SERVED = "SchedulerNotServed"
    CANNOT_RESERVE = "CannotReserve"
    FAILED_HERE = "FailedHere"
    NOT_ENOUGH_FREE = "NotEnoughFree"
    NO_NODE_FOR_POD = "NoNodeForPod"
    NODES_EXCLUDED = "NodesExcluded"
    KEPT_FOR_GANG = "KeptForGang"


AWAITS_JOBS = frozenset({Code.WAITING_FOR_JOB, Code.PREDECESSOR_FAILED})
"""Reasons of jobs that start after others: they hold up no queue, and their messages hold no amounts."""


@dataclass(frozen=True, slots=True)
class Detail:
    """What is kept of a verdict with the decision it led to; `jobs.core.placement.explaining.Look` says what each means."""

    cause: str = ""
    role: str = ""
    nodes: str = ""
    never: bool = False
    term: int = 0
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result for one cluster. ``short``: the missing amounts in whole units."""

    cluster: str
    code: Code
    message: str
    short: Amounts = field(default_factory=dict)
    score: float = 0.0
    detail: Detail | None = None

    @property
    def fits(self) -> bool:
        return self.code is Code.FITS

    @property
    def is_crowded(self) -> bool:
        """Whether the cluster would hold the gang if others were gone."""
        return self.code in _CROWDED

    def as_json(self) -> dict[str, Any]:
        return {
            "cluster": self.cluster,
            "fits": self.fits,
            "code": self.code.value,
            "message": self.message,
            "short": dict(self.short),
            "score": round(self.score, 4),
        }

    def explained(self) -> dict[str, Any]:
        """As `as_json`, with the filter that refused, or the score by part."""
        if self.detail is None:
            return self.as_json()
        detail = {name: value for name in _DETAIL if (value := getattr(self.detail, name))}
        return {**self.as_json(), **detail}


_CROWDED = frozenset({Code.NOT_ENOUGH_FREE, Code.NO_NODE_FOR_POD, Code.NODES_EXCLUDED, Code.KEPT_FOR_GANG})
_DETAIL = ("cause", "role", "nodes", "never", "term", "parts")


@dataclass(frozen=True, slots=True)
class QuotaVerdict:
    """The quota's answer. ``facts`` are its numbers and names: resource, asked, used, max; or position, blocker; ..."""

    code: Code
    path: str
    """The node of the quota tree that it is about; empty: none."""
    message: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"code": self.code.value, "path": self.path, "message": self.message, **self.facts}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a job waits. Quota and placement are reported separately, whichever of the two it waits for."""

    code: Code
    message: str
    clusters: tuple[Verdict, ...] = ()
    quota: QuotaVerdict | None = None
    cause: str = ""
    """Of a failure, as `jobs.core.failover.causes.Cause`; empty: none is known."""

    def as_json(self) -> dict[str, Any]:
        return {
            "code": self.code.value,
            "message": self.message,
            "clusters": [verdict.as_json() for verdict in self.clusters],
            **({"quota": self.quota.as_json()} if self.quota else {}),
            **({"cause": self.cause} if self.cause else {}),
        }


def no_cluster_fits(verdicts: Sequence[Verdict]) -> Reason:
    """``0/3 clusters fit: north is short of 4 nvidia.com/gpu; south is cordoned; ...``, cluster by cluster."""
    if not verdicts:
        return Reason(Code.NO_CLUSTER, "the fleet has no cluster yet: join one with `convoy cluster join`")
    listed = "; ".join(f"{v.cluster} {v.message}" for v in verdicts)
    return Reason(Code.NO_CLUSTER_FITS, f"0/{len(verdicts)} clusters fit: {listed}", tuple(verdicts))


def amount(resource: str, value: int) -> str:
    """``4 nvidia.com/gpu``, ``1.5 cpu``, ``12.0Gi memory``: whole units formatted for messages."""
    if resource == "cpu":
        return f"{value / 1000:g} cpu"
    if resource == "kube-queue/max-jobs":
        return f"{value} job{'s' if value != 1 else ''}"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return f"{value / 2**30:.1f}Gi {resource}"
    return f"{value} {resource}"


def amounts(values: Amounts) -> str:
    return " and ".join(amount(resource, value) for resource, value in values.items())
