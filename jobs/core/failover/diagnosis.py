"""Says why an attempt failed, from its pods and their logs: a class, the message of the failing rank, and evidence.

The state of pods and nodes comes from the member and is believed. A log comes from the tenant: it can make the cause more exact
(data, memory) and name the class, but what it says of hardware does not give the job the larger budget of lost nodes.
"""

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from jobs.core.failover import symptoms
from jobs.core.failover.causes import Cause, Failure, PodEnd
from jobs.core.failover.symptoms import Finding, Symptom


class Class(StrEnum):
    CODE = "code"
    DATA = "data"
    INFRASTRUCTURE = "infrastructure"
    PREEMPTION = "preemption"
    UNKNOWN = "unknown"


_OF_CAUSE: Mapping[Cause, Class] = {
    Cause.CODE_ERROR: Class.CODE,
    Cause.OUT_OF_MEMORY: Class.CODE,
    Cause.DATA_ERROR: Class.DATA,
    Cause.INFRASTRUCTURE: Class.INFRASTRUCTURE,
    Cause.EVICTED: Class.PREEMPTION,
}
_OF_SYMPTOM: Mapping[Symptom, Class] = {
    Symptom.GPU_FAULT: Class.INFRASTRUCTURE,
    Symptom.NODE_CHECK: Class.INFRASTRUCTURE,
    Symptom.NETWORK_FAULT: Class.INFRASTRUCTURE,
    Symptom.TERMINATED: Class.PREEMPTION,
}
_CAUSE_OF: Mapping[Symptom, Cause] = {
    Symptom.OUT_OF_MEMORY: Cause.OUT_OF_MEMORY,
    Symptom.GPU_OUT_OF_MEMORY: Cause.OUT_OF_MEMORY,
    Symptom.DATA: Cause.DATA_ERROR,
    Symptom.EXCEPTION: Cause.CODE_ERROR,
    # Not the program's fault, but only the log says so: the budget of unknown causes applies.
    Symptom.GPU_FAULT: Cause.UNKNOWN,
    Symptom.NODE_CHECK: Cause.UNKNOWN,
    Symptom.NETWORK_FAULT: Cause.UNKNOWN,
    Symptom.PEER_LOST: Cause.UNKNOWN,
}
_WEAK = frozenset({Cause.CODE_ERROR, Cause.UNKNOWN})
"""Causes by the state of pods that a log can make more exact."""
_ASKED_TO_STOP = 128 + signal.SIGTERM
"""By the member or by whatever deleted the pod: also what a container gets whose preStop hook took all of its grace."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    kind: Class
    cause: Cause
    message: str
    pod: PodEnd | None = None
    """The pod that shows it."""
    finding: Finding | None = None
    """What its log says."""

    @property
    def is_out_of_memory(self) -> bool:
        return self.cause is Cause.OUT_OF_MEMORY

    @property
    def is_proven_code_error(self) -> bool:
        """Whether the program's own exception ended it, which it would also do on another cluster."""
        return self.cause is Cause.CODE_ERROR and self.finding is not None and self.finding.symptom is Symptom.EXCEPTION

    @property
    def node_at_fault(self) -> str:
        """The node that the job should not get again. Empty: none is known to be at fault."""
        symptom = self.finding.symptom if self.finding else None
        is_at_fault = self.cause is Cause.INFRASTRUCTURE or symptom in (Symptom.GPU_FAULT, Symptom.NODE_CHECK)
        return self.pod.node if self.pod and self.kind is Class.INFRASTRUCTURE and is_at_fault else ""

    @property
    def summary(self) -> str:
        """In one line: ``code: ValueError: bad shape (rank 3, train.py:88 in step, llama-worker-1 on node-a, exit code 1)``."""
        places = [f"rank {self.finding.rank}"] if self.finding and self.finding.rank is not None else []
        places += [self.finding.where] if self.finding and self.finding.where else []
        if self.pod and self.pod.pod not in self.message:
            places += [f"{self.pod.pod} on {self.pod.node}" if self.pod.node else self.pod.pod]
            places += [ended_by(self.pod.exit_code)] if self.pod.exit_code else []
        return f"{self.kind}: {self.message}" + (f" ({', '.join(places)})" if places else "")

    def as_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"category": self.kind.value, "message": self.message, "summary": self.summary}
        if self.finding:
            shown |= {**self.finding.as_json(), "message": self.message}
        if self.pod:
            pod = {"pod": self.pod.pod, "node": self.pod.node, "exit_code": self.pod.exit_code}
            shown |= {name: value for name, value in pod.items() if value not in ("", None)}
        return shown


def class_of(cause: str) -> Class:
    """The class of an attempt that was not diagnosed, by its cause."""
    return _OF_CAUSE.get(Cause(cause), Class.UNKNOWN) if cause in set(Cause) else Class.UNKNOWN


def diagnose(failure: Failure, logs: Sequence[tuple[PodEnd, Finding]], why_lost: str = "") -> Diagnosis:
    """Why the attempt failed. ``logs`` are findings in the logs of its pods, those of the pods that ended first in front.

    ``why_lost`` is what the fleet itself knows of an attempt that it has lost: it stands where no pod shows a cause.
    """
    telling = symptoms.most_telling(logs)
    if failure.cause not in _WEAK or telling is None:
        return _of_pods(failure, logs, why_lost)
    pod, finding = telling
    cause = _CAUSE_OF.get(finding.symptom, failure.cause)
    kind = _OF_SYMPTOM.get(finding.symptom) or _OF_CAUSE.get(cause, Class.UNKNOWN)
    return Diagnosis(kind, cause, finding.message, pod, finding)


def _of_pods(failure: Failure, logs: Sequence[tuple[PodEnd, Finding]], why_lost: str) -> Diagnosis:
    """By the state of the pods alone. The log of the pod that shows the cause is stored beside it."""
    kind = _OF_CAUSE.get(failure.cause, Class.UNKNOWN)
    pod = next(iter(failure.evidence), None)
    if pod is None:
        return Diagnosis(kind, failure.cause, why_lost or "no pod shows why it failed")
    if failure.cause is Cause.UNKNOWN and pod.exit_code == _ASKED_TO_STOP:
        kind = Class.PREEMPTION
    finding = next((finding for other, finding in logs if other.pod == pod.pod), None)
    words = {Cause.OUT_OF_MEMORY: "ran out of memory: "}.get(failure.cause, "")
    message = f"{words}{pod}".replace(f"exit code {pod.exit_code}", ended_by(pod.exit_code or 0))
    return Diagnosis(kind, failure.cause, message, pod, finding)


def ended_by(exit_code: int) -> str:
    """``exit code 1``; of a code that stands for a signal, with its name: ``exit code 137 (SIGKILL)``."""
    try:
        name = signal.Signals(exit_code - 128 if exit_code > 0 else -exit_code).name
    except ValueError:
        return f"exit code {exit_code}"
    return f"exit code {exit_code} ({name})" if exit_code > 128 or exit_code < 0 else f"exit code {exit_code}"
