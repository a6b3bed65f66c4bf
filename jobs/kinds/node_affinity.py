"""Adds what a pod requires of the labels of its node to what its own manifest requires. Pure."""

from collections.abc import Sequence
from typing import Any

Spec = dict[str, Any]


def require(spec: Spec, expression: Spec) -> None:
    """The pod spec with this condition in each of its required terms, in place."""
    affinity = spec["affinity"] = {**(spec.get("affinity") or {})}
    of_nodes = affinity["nodeAffinity"] = {**(affinity.get("nodeAffinity") or {})}
    required = of_nodes.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = required.get("nodeSelectorTerms") or [{"matchExpressions": []}]
    of_nodes["requiredDuringSchedulingIgnoredDuringExecution"] = {
        "nodeSelectorTerms": [_and(term, expression) for term in terms]
    }


def none_of(hostnames: Sequence[str]) -> Spec:
    """The condition that a node has none of these hostnames."""
    return {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": sorted(hostnames)}


def _and(term: Spec, expression: Spec) -> Spec:
    """A term without any condition matches nothing, and goes on doing so."""
    return {**term, "matchExpressions": [*(term.get("matchExpressions") or []), expression]} if term else term
