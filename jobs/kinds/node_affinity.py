"""Adds what a pod requires of the labels of its node to what its own manifest requires. Pure."""

from collections.abc import Sequence
from typing import Any

Spec = dict[str, Any]
_HOSTNAME = "kubernetes.io/hostname"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def require(spec: Spec, expression: Spec) -> None:
    """The pod spec with this condition in each of its required terms, in place."""
    affinity = spec["affinity"] = {**(spec.get("affinity") or {})}
    of_nodes = affinity["nodeAffinity"] = {**(affinity.get("nodeAffinity") or {})}
    terms = _terms(spec) or [{"matchExpressions": []}]
    of_nodes[_REQUIRED] = {"nodeSelectorTerms": [_and(term, expression) for term in terms]}


def drop_hostnames(spec: Spec, written: Spec) -> None:
    """Takes out of the pod spec, in place, which hostnames are not meant, but for what its author has ``written``."""
    stated, terms = [list(term.get("matchExpressions") or []) for term in _terms(written)], _terms(spec)
    if len(stated) != len(terms):
        # They are not those of the author one by one: what is stated in one is kept in each.
        stated = [[expression for expressions in stated for expression in expressions]] * len(terms)
    terms = [_without_hostnames(term, own) for term, own in zip(terms, stated, strict=True)]
    if terms == _terms(spec):
        return
    affinity = spec["affinity"] = {**spec["affinity"]}
    of_nodes = affinity["nodeAffinity"] = {**affinity["nodeAffinity"]}
    if _terms(written) or any(term.get("matchExpressions") or term.get("matchFields") for term in terms):
        of_nodes[_REQUIRED] = {"nodeSelectorTerms": terms}
    else:
        # The term was made for the hostnames alone; one that is left without a condition would match no node.
        del of_nodes[_REQUIRED]


def _without_hostnames(term: Spec, stated: Sequence[Spec]) -> Spec:
    """As many equal conditions are kept as are stated."""
    expressions, left, kept = term.get("matchExpressions") or [], list(stated), []
    for each in expressions:
        if each in left:
            left.remove(each)
        elif _names_hosts(each):
            continue
        kept.append(each)
    return term if kept == expressions else {**term, "matchExpressions": kept}


def _names_hosts(expression: Spec) -> bool:
    return expression.get("key") == _HOSTNAME and expression.get("operator") == "NotIn"


def _terms(spec: Spec) -> list[Spec]:
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    return list(required.get("nodeSelectorTerms") or [])


def none_of(hostnames: Sequence[str]) -> Spec:
    """The condition that a node has none of these hostnames."""
    return {"key": _HOSTNAME, "operator": "NotIn", "values": sorted(hostnames)}


def _and(term: Spec, expression: Spec) -> Spec:
    """A term without any condition matches nothing, and goes on doing so."""
    stated = term.get("matchExpressions") or []
    return {**term, "matchExpressions": [*stated, expression]} if term and expression not in stated else term
