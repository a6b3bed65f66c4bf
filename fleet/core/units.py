"""Amounts of resources in whole units: milli-CPU, bytes, devices. Integers add up exactly; quantities like ``100m`` do not.

Every request of a job and every allocatable of a node goes through here, so that both sides of a comparison are counted
alike: rounded up, as the Kubernetes scheduler rounds.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from fleet.kube import quantities

Amounts = dict[str, int]
Spec = Mapping[str, Any]


def amounts(resources: Mapping[str, Any] | None) -> Amounts:
    """Quantities as whole units; raises `QuantityError` for one that cannot be read."""
    return {
        name: quantities.milli(value) if name == "cpu" else quantities.units(value)
        for name, value in (resources or {}).items()
    }


def pod_request(spec: Spec) -> Amounts:
    """What a pod with this spec asks of its node, ``pods: 1`` included.

    Per resource: the larger of what runs together (containers and restartable init containers) and of each plain init
    container with the restartable ones started before it; plus the overhead.
    """
    together = plus(map(_container_request, spec.get("containers") or []))
    beside: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or []:
        ask = _container_request(container)
        if container.get("restartPolicy") == "Always":
            beside = plus((beside, ask))
        else:
            peak = _largest(peak, plus((beside, ask)))
    return plus((_largest(peak, plus((together, beside))), amounts(spec.get("overhead")), {"pods": 1}))


def plus(parts: Iterable[Mapping[str, int]]) -> Amounts:
    """The sum, resource by resource."""
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def _container_request(container: Spec) -> Amounts:
    resources = container.get("resources") or {}
    return {**amounts(resources.get("limits")), **amounts(resources.get("requests"))}


def _largest(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in one | other}
