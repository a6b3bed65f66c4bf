"""Classifies why an attempt failed from the state of its pods: program error, out of memory, lost node, or eviction.

A gang fails as a whole: when one node is lost, pods on other nodes end with errors because they lose a peer. Therefore
evidence of an infrastructure failure on any pod takes precedence over evidence of a program error. No I/O.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Cause(StrEnum):
    CODE_ERROR = "CodeError"
    """The program ended with an error of its own (exit codes 1 to 127)."""
    DATA_ERROR = "DataError"
    """The program could not read or write its data, by the exception in its log."""
    OUT_OF_MEMORY = "OutOfMemory"
    INFRASTRUCTURE = "Infrastructure"
    """A node or a cluster was lost."""
    EVICTED = "Evicted"
    """The member evicted pods: node pressure, a taint, a preemption in the member, or a drain."""
    REFUSED = "MemberRefused"
    REMOVED = "CopyRemoved"
    """The copy was deleted in its member by another client."""
    UNKNOWN = "Unknown"
    """No pod shows the cause: it was killed by a signal, was not started in time, or no longer exists."""


_NODE_LOST = frozenset(
    {
        "NodeLost", "NodeShutdown", "Shutdown", "Terminated", "TerminationByKubelet", "DeletionByPodGC",
        "UnexpectedAdmissionError", "NodeAffinity", "OutOfcpu", "OutOfmemory", "OutOfpods", "ContainerStatusUnknown",
    }
)  # fmt: skip
"""Reasons in the status or in the DisruptionTarget condition of a pod whose node was lost or refused it."""
_NODE_AT_FAULT = frozenset({"NodeLost", "UnexpectedAdmissionError", "ContainerStatusUnknown"})
"""Of these, what is no planned shutdown, and no race of two schedulers."""
_EVICTED = frozenset(
    {"Evicted", "Preempting", "Preempted", "PreemptionByScheduler", "EvictionByEvictionAPI", "DeletionByTaintManager"}
)
_OUT_OF_MEMORY = frozenset({"OOMKilled"})
_LAST_ERROR = 127
"""Higher exit codes name the signal that ended the program, by the convention of shells and Kubeflow."""


@dataclass(frozen=True, slots=True)
class PodEnd:
    """The final state of one pod of a failed attempt, as far as it is known."""

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

    @property
    def node_at_fault(self) -> str:
        """The node that failed the pod by the member's word; empty: it is not known to have."""
        is_at_fault = self.node_ready is False or bool({self.reason, self.disruption} & _NODE_AT_FAULT)
        return self.node if is_at_fault else ""

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
    """The pods that show the cause."""

    @property
    def summary(self) -> str:
        """The cause and the first pods that show it, in words. Empty without evidence."""
        if not self.evidence:
            return ""
        pods = "; ".join(str(pod) for pod in self.evidence[:_MAX_SHOWN])
        more = f" and {len(self.evidence) - _MAX_SHOWN} more" if len(self.evidence) > _MAX_SHOWN else ""
        return f"{self.cause}: {pods}{more}"

    def evidence_as_json(self) -> list[dict[str, Any]]:
        """Of more pods than are stored, first one of each node: how many nodes were lost is counted from them."""
        first_of = {pod.node: pod for pod in reversed(self.evidence)}
        pods = sorted(self.evidence, key=lambda pod: first_of[pod.node] is not pod)
        kept = self.evidence if len(pods) <= _MAX_STORED else pods[:_MAX_STORED]
        return [pod.as_json() for pod in kept]


def lost_nodes(stored: Iterable[Mapping[str, Any]] | None) -> set[str]:
    """The nodes that were lost under pods which had not ended, by the evidence stored with an attempt."""
    return {
        str(pod.get("node") or "")
        for pod in stored or ()
        if pod.get("node_ready") is False and pod.get("phase") not in _ENDED
    }


_ENDED = ("Succeeded", "Failed")
_MAX_SHOWN, _MAX_STORED = 2, 20
"""Pods in messages, and pods stored with an attempt."""


def classify(pods: Sequence[PodEnd]) -> Failure:
    """The cause of a failed attempt, determined from its pods."""
    failed = [pod for pod in pods if pod.has_failed]
    # In this order: a lost node also makes pods fail elsewhere, so the first cause that any pod shows is the cause.
    for cause in (Cause.INFRASTRUCTURE, Cause.EVICTED, Cause.OUT_OF_MEMORY, Cause.CODE_ERROR):
        if shown := tuple(pod for pod in failed if _cause_of(pod) is cause):
            return Failure(cause, shown)
    return Failure(Cause.UNKNOWN, tuple(failed))


def _cause_of(pod: PodEnd) -> Cause:
    reasons = {pod.reason, pod.disruption}
    if reasons & _NODE_LOST or pod.node_ready is False:
        return Cause.INFRASTRUCTURE
    if reasons & _EVICTED:
        return Cause.EVICTED
    if reasons & _OUT_OF_MEMORY:
        return Cause.OUT_OF_MEMORY
    return Cause.CODE_ERROR if pod.exit_code and 0 < pod.exit_code <= _LAST_ERROR else Cause.UNKNOWN


BUDGETED: Mapping[str, Cause] = {cause.value: cause for cause in Cause}
"""The causes for which a policy can set a budget, by the name it uses."""
