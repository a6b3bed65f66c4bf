"""How members say that a place is taken back: one adapter for each source, and the notice that its provider gives."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jobs.runtime.notices import seconds

Manifest = Mapping[str, Any]

RECLAIM_TAINT = "convoy.dev/reclaim"
"""The simulator's. Its value is the deadline in seconds since the epoch."""
RECLAIM_UNTIL = "convoy.dev/reclaim-until"
"""Of a pod: the fleet takes its place back then."""
DISRUPTION = "DisruptionTarget"
NODE_DELETED = "NodeDeleted"
FLEET = "Fleet"


@dataclass(frozen=True, slots=True)
class Signal:
    """A place is taken back."""

    cause: str
    node: str = ""
    deadline: float | None = None
    """None: the notice of its cause, counted from when it is first seen."""

    def due(self, first_seen: float, notice_s: Mapping[str, float]) -> float:
        if self.deadline is not None:
            return self.deadline
        return first_seen + notice_s.get(self.cause, DEFAULT_NOTICE_S)


DEFAULT_NOTICE_S = 30.0
NOTICE_S: Mapping[str, float] = {
    "ack-spot": 300.0,
    "eci-spot": 180.0,
    "aws-spot": 120.0,
    "aws-scheduled": 120.0,
    "gcp-termination": 30.0,
    "azure-eviction": 30.0,
}
"""What providers promise at least, by cause. GKE gives VMs with GPUs more, Azure up to 15 minutes for some events."""
TAINTS: Mapping[str, str] = {
    "aws-node-termination-handler/spot-itn": "aws-spot",
    "aws-node-termination-handler/asg-lifecycle-termination": "aws-scheduled",
    "aws-node-termination-handler/scheduled-maintenance": "aws-scheduled",
    "cloud.google.com/impending-node-termination": "gcp-termination",
    "remediator.aks.microsoft.com/unschedulable": "azure-eviction",
    "remediator.kubernetes.azure.com/unschedulable": "azure-eviction",
}
NODE_CONDITIONS: Mapping[tuple[str, str], str] = {("InstanceExpired", "InstanceToBeTerminated"): "ack-spot"}
"""Type and reason, of conditions that are True."""
POD_CONDITIONS: Mapping[str, str] = {"ContainerInstanceExpired": "eci-spot"}


def of_node(node: Manifest) -> Signal | None:
    """The signal on a node that is due first; one with a deadline comes before one without."""
    return min(_of_node(node), key=_urgency, default=None)


def of_pod(pod: Manifest) -> Signal | None:
    """The signal on the pod itself that is due first."""
    return min(_of_pod(pod), key=_urgency, default=None)


def gone(node: str) -> Signal:
    """The node of a pod is no more."""
    return Signal(NODE_DELETED, node)


def earliest(signals: Iterator[Signal | None]) -> Signal | None:
    return min((signal for signal in signals if signal), key=_urgency, default=None)


def _urgency(signal: Signal) -> float:
    return float("inf") if signal.deadline is None else signal.deadline


def _of_node(node: Manifest) -> Iterator[Signal]:
    meta = _part(node, "metadata")
    name = str(meta.get("name") or "")
    if meta.get("deletionTimestamp"):
        yield gone(name)
    for taint in _entries(_part(node, "spec").get("taints")):
        key = str(taint.get("key"))
        if key == RECLAIM_TAINT:
            yield Signal("reclaim", name, _epoch(taint.get("value")))
        elif key in TAINTS:
            yield Signal(TAINTS[key], name)
    for condition in _entries(_part(node, "status").get("conditions")):
        cause = NODE_CONDITIONS.get((str(condition.get("type")), str(condition.get("reason"))))
        if cause and condition.get("status") == "True":
            yield Signal(cause, name)


def _of_pod(pod: Manifest) -> Iterator[Signal]:
    meta, spec = _part(pod, "metadata"), _part(pod, "spec")
    node = str(spec.get("nodeName") or "")
    until = _part(meta, "annotations").get(RECLAIM_UNTIL)
    if until is not None and (deadline := _time(until)) is not None:
        yield Signal(FLEET, node, deadline)
    for condition in _entries(_part(pod, "status").get("conditions")):
        kind = str(condition.get("type"))
        if condition.get("status") != "True":
            continue
        if kind == DISRUPTION:
            yield Signal(DISRUPTION, node, _disrupted(spec, condition))
        elif kind in POD_CONDITIONS:
            yield Signal(POD_CONDITIONS[kind], node)


def _disrupted(spec: Manifest, condition: Manifest) -> float | None:
    since, grace = _time(condition.get("lastTransitionTime")), spec.get("terminationGracePeriodSeconds")
    return None if since is None else since + (grace if isinstance(grace, int) else DEFAULT_NOTICE_S)


def _epoch(value: object) -> float | None:
    text = str(value)
    return float(text) if text.isascii() and text.isdigit() and len(text) < 11 else None


def _time(text: object) -> float | None:
    try:
        return seconds(text)
    except ValueError:
        return None


def _part(manifest: Manifest, name: str) -> Manifest:
    part = manifest.get(name)
    return part if isinstance(part, Mapping) else {}


def _entries(value: object) -> Iterator[Manifest]:
    return (entry for entry in value if isinstance(entry, Mapping)) if isinstance(value, list) else iter(())
