"""Why an attempt failed, classified by what its member reports of its pods: the program, its memory, its node, or an eviction.

A gang fails together: when a node goes, the other pods end with errors of their own, a lost peer. So evidence against the
infrastructure comes before evidence against the program, whichever pod has it. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Cause(StrEnum):
    CODE_ERROR = "CodeError"
    """The program ended with an error of its own (exit codes 1 to 127)."""
    OUT_OF_MEMORY = "OutOfMemory"
    INFRASTRUCTURE = "Infrastructure"
    """A node or a cluster was lost."""
    EVICTED = "Evicted"
    """The member took pods away: pressure on the node, a taint, a preemption there, a drain."""
    REFUSED = "MemberRefused"
    REMOVED = "CopyRemoved"
    """The copy was deleted in its member, and not by Convoy."""
    UNKNOWN = "Unknown"
    """No pod shows why: killed by a signal, not started in time, or no pod was left to look at."""


_NODE_GONE = frozenset(
    {
        "NodeLost", "NodeShutdown", "Shutdown", "Terminated", "TerminationByKubelet", "DeletionByPodGC",
        "UnexpectedAdmissionError", "NodeAffinity", "OutOfcpu", "OutOfmemory", "OutOfpods", "ContainerStatusUnknown",
    }
)  # fmt: skip
"""Reasons of a pod, or of its condition DisruptionTarget."""
_TAKEN_AWAY = frozenset(
    {"Evicted", "Preempting", "Preempted", "PreemptionByScheduler", "EvictionByEvictionAPI", "DeletionByTaintManager"}
)
_OUT_OF_MEMORY = frozenset({"OOMKilled"})
_LAST_ERROR = 127
"""Codes above say which signal ended the program, as shells and Kubeflow have it."""


@dataclass(frozen=True, slots=True)
class PodEnd:
    """What is known of a pod of a failed attempt."""

    pod: str
    phase: str
    reason: str = ""
    exit_code: int | None = None
    disruption: str = ""
    """Reason of the pod's condition DisruptionTarget."""
    node: str = ""
    node_ready: bool | None = None
    """None: unknown."""
    restarts: int = 0
    message: str = ""

    @property
    def has_failed(self) -> bool:
        return self.phase == "Failed" or bool(self.exit_code) or bool(self.disruption) or self.node_ready is False

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value or value is False}

    def __str__(self) -> str:
        facts = [self.disruption or self.reason]
        facts += [f"exit code {self.exit_code}"] if self.exit_code else []
        facts += [f"node {self.node} is not ready"] if self.node_ready is False else []
        return f"{self.pod}: {', '.join(fact for fact in facts if fact) or self.phase}"


@dataclass(frozen=True, slots=True)
class Failure:
    cause: Cause
    evidence: tuple[PodEnd, ...] = ()
    """The pods that show it."""

    @property
    def summary(self) -> str:
        """The cause and its first pods in words; empty when nothing is known."""
        if not self.evidence:
            return ""
        pods = "; ".join(str(each) for each in self.evidence[:_SHOWN])
        more = f" and {len(self.evidence) - _SHOWN} more" if len(self.evidence) > _SHOWN else ""
        return f"{self.cause}: {pods}{more}"

    def evidence_as_json(self) -> list[dict[str, Any]]:
        return [each.as_json() for each in self.evidence[:_KEPT]]


_SHOWN, _KEPT = 2, 20


def classify(pods: Sequence[PodEnd]) -> Failure:
    """The cause of a failed attempt by its pods."""
    failed = [pod for pod in pods if pod.has_failed]
    for cause in (Cause.INFRASTRUCTURE, Cause.EVICTED, Cause.OUT_OF_MEMORY, Cause.CODE_ERROR):
        if shown := tuple(pod for pod in failed if _cause_of(pod) is cause):
            return Failure(cause, shown)
    return Failure(Cause.UNKNOWN, tuple(failed))


def _cause_of(pod: PodEnd) -> Cause:
    reasons = {pod.reason, pod.disruption}
    if reasons & _NODE_GONE or pod.node_ready is False:
        return Cause.INFRASTRUCTURE
    if reasons & _TAKEN_AWAY:
        return Cause.EVICTED
    if reasons & _OUT_OF_MEMORY:
        return Cause.OUT_OF_MEMORY
    return Cause.CODE_ERROR if pod.exit_code and 0 < pod.exit_code <= _LAST_ERROR else Cause.UNKNOWN


BUDGETED: Mapping[str, Cause] = {cause.value: cause for cause in Cause}
"""By the name under which a policy gives it a budget."""
