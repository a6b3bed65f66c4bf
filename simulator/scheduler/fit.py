"""Checks whether a pod fits on a node, with the messages of kube-scheduler. No I/O.

Amounts are whole thousandths of a unit, so that ``500m`` of CPU and ``1`` GPU can be added exactly.
"""

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from fleet.kube.quantities import milli
from simulator.machinery.objects import Object, labels_of, name_of

Amounts = dict[str, int]


@lru_cache(maxsize=4096)
def amount(quantity: str | int | float) -> int:
    """A Kubernetes quantity in thousandths, rounded up as the scheduler does."""
    return milli(quantity)


def amounts(quantities: dict[str, Any] | None) -> Amounts:
    return {name: amount(value) for name, value in (quantities or {}).items()}


def pod_request(spec: Object) -> Amounts:
    """The pod's request: the sum of its containers, or the largest init container if that is more, plus overhead."""
    total: Amounts = {}
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or []:
        request = _container_request(container)
        if container.get("restartPolicy") == "Always":
            sidecars = _plus(sidecars, request)
            request = {}
        peak = _largest(peak, _plus(sidecars, request))
    for container in spec.get("containers") or []:
        total = _plus(total, _container_request(container))
    total = _largest(_plus(total, sidecars), peak)
    return {**_plus(total, amounts(spec.get("overhead"))), "pods": 1000}


def _container_request(container: Object) -> Amounts:
    resources = container.get("resources") or {}
    return {**amounts(resources.get("limits")), **amounts(resources.get("requests"))}


def _plus(one: Amounts, other: Amounts) -> Amounts:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def _largest(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


@dataclass(frozen=True, slots=True)
class PodRequest:
    """The requirements of one pod. Pods of the same ``shape`` fit on the same nodes."""

    amounts: Amounts
    spec: Object
    shape: str


def request_of(pod: Object) -> PodRequest:
    spec = pod["spec"]
    request = pod_request(spec)
    where = (spec.get("nodeSelector"), (spec.get("affinity") or {}).get("nodeAffinity"), spec.get("tolerations"))
    return PodRequest(request, spec, json.dumps([request, where], sort_keys=True))


@dataclass(slots=True)
class NodeInfo:
    """One node: its capacity, the amounts held on it, its labels and taints."""

    name: str
    offers: Amounts
    labels: dict[str, str]
    taints: list[Object]
    unschedulable: bool = False
    held: Amounts = field(default_factory=dict)

    def free(self, resource: str) -> int:
        return self.offers.get(resource, 0) - self.held.get(resource, 0)

    def hold(self, request: Amounts, sign: int = 1) -> None:
        for resource, value in request.items():
            self.held[resource] = self.held.get(resource, 0) + sign * value


def node_info(node: Object) -> NodeInfo:
    spec, status = node.get("spec") or {}, node.get("status") or {}
    return NodeInfo(
        name=name_of(node),
        offers=amounts(status.get("allocatable") or status.get("capacity")),
        labels=labels_of(node),
        taints=spec.get("taints") or [],
        unschedulable=bool(spec.get("unschedulable")),
    )


def why_not(request: PodRequest, node: NodeInfo) -> list[str]:
    """Why the pod does not fit on this node, in kube-scheduler's words. Empty if it fits."""
    if node.unschedulable and not _tolerates_cordon(request.spec):
        return ["node(s) were unschedulable"]
    taint = first_untolerated(node.taints, request.spec.get("tolerations") or [], ("NoSchedule", "NoExecute"))
    if taint:
        return [f"node(s) had taint {{{taint['key']}: {taint.get('value') or ''}}}, that the pod didn't tolerate"]
    if not admits(request.spec, node):
        return ["node(s) didn't match node selector"]
    short = [resource for resource, value in request.amounts.items() if value > 0 and value > node.free(resource)]
    return ["Too many pods" if resource == "pods" else f"Insufficient {resource}" for resource in sorted(short)]


def _tolerates_cordon(spec: Object) -> bool:
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    return any(tolerates(toleration, cordon) for toleration in spec.get("tolerations") or [])


def tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def first_untolerated(taints: list[Object], tolerations: list[Object], effects: tuple[str, ...]) -> Object | None:
    for taint in taints:
        if taint.get("effect") in effects and not any(tolerates(t, taint) for t in tolerations):
            return taint
    return None


def admits(spec: Object, node: NodeInfo) -> bool:
    """Whether the node matches the node selector and the required node affinity."""
    selector = spec.get("nodeSelector") or {}
    if any(node.labels.get(key) != value for key, value in selector.items()):
        return False
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if not affinity:
        return True
    return any(_term_holds(term, node) for term in affinity.get("nodeSelectorTerms") or [])


def _term_holds(term: Object, node: NodeInfo) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    return all(_matches(e, node.labels) for e in expressions) and all(
        _matches(e, {"metadata.name": node.name}) for e in fields
    )


def _matches(expression: Object, labels: dict[str, str]) -> bool:
    label, values = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return label in values
        case "NotIn":
            return label not in values
        case "Exists":
            return label is not None
        case "DoesNotExist":
            return label is None
        case "Gt" | "Lt" as operator:
            if label is None or not label.lstrip("-").isdigit():
                return False
            return int(label) > int(values[0]) if operator == "Gt" else int(label) < int(values[0])
        case _:
            return False
