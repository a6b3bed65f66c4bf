"""Flavors: the models of GPUs that a tree tells apart, each by labels of its nodes, and the names their amounts are counted by.

An amount of one flavor, ``nvidia.com/gpu:h100``, is a resource of its own beside the plain name, which counts all models: no
part of the arithmetic knows that they belong together. A colon is in no resource name of Kubernetes.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fleet.kube import names
from quotas.core.trees.amounts import UNLIMITED, format_amount
from quotas.core.trees.validation import Fault, Limits

FLAVORS = "flavors"
"""The attribute of the root that has the table."""
FLAVOR_ORDER = "flavor-order"
EXAMPLE = '{"h100": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}'
GPU = "nvidia.com/gpu"
"""The resource that has flavors."""
_MOST = 32
_SEPARATOR = ":"
Labels = Mapping[str, str]
Flavors = Mapping[str, Labels]
"""The labels of each flavor's nodes, by name and in the order of names."""


class FlavorChoice(StrEnum):
    """What follows when a flavor would do, but not in the best way; the names are Kueue's."""

    STOP = "MayStopSearch"
    """The flavor is taken."""
    NEXT = "TryNextFlavor"
    """The flavors after it are tried first."""


@dataclass(frozen=True, slots=True)
class Preference:
    """Which flavors the jobs of a queue may use, in this order, and when a later one is tried."""

    order: tuple[str, ...] = ()
    """Empty: all of the table, by name."""
    when_can_borrow: FlavorChoice = FlavorChoice.STOP
    when_can_preempt: FlavorChoice = FlavorChoice.NEXT


def amount_name(flavor: str) -> str:
    """The name that amounts of this flavor are counted by."""
    return f"{GPU}{_SEPARATOR}{flavor}"


def flavor_of(resource: str) -> str:
    """The flavor that the name of an amount names; empty for any other resource."""
    base, _, flavor = resource.partition(_SEPARATOR)
    return flavor if base == GPU else ""


def flavors_of(amounts: Mapping[str, int]) -> dict[str, int]:
    """The GPUs of each flavor among these amounts."""
    return {flavor: amount for name, amount in amounts.items() if amount and (flavor := flavor_of(name))}


def name_fault(resource: str, flavors: Iterable[str]) -> str | None:
    """What is wrong with a name that has a colon; None for one that has none."""
    base, separator, flavor = resource.partition(_SEPARATOR)
    if not separator:
        return None
    if base != GPU:
        return f"only {GPU} has flavors"
    known = list(flavors)
    if not known:
        return f"names the flavor {flavor}, and the root has no attribute {FLAVORS}, such as {EXAMPLE}"
    return "" if flavor in known else f"names the flavor {flavor}; those of the root are {', '.join(known)}"


def node_flavor(flavors: Flavors, labels: Labels) -> str:
    """The flavor of a node with these labels; empty when it has none."""
    return next((name for name, stated in flavors.items() if stated.items() <= labels.items()), "")


def parse_flavors(value: object, faults: list[Fault]) -> Flavors:
    """The table; faults name the flavor, the label and its value."""
    if value is None:
        return {}
    body = _parsed(value)
    if not isinstance(body, dict) or not all(isinstance(labels, dict) for labels in body.values()):
        faults.append((FLAVORS, f"must be JSON such as '{EXAMPLE}'"))
        return {}
    wrong = [*_entry_faults(body)] or [*_overlaps(body)]
    if len(body) > _MOST:
        wrong.append(f"has {len(body)} flavors, more than {_MOST}")
    faults += [(FLAVORS, detail) for detail in wrong]
    return {} if wrong else {name: dict(sorted(body[name].items())) for name in sorted(body)}


def _entry_faults(body: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, labels in body.items():
        if detail := names.label_fault(name):
            yield f"{name!r} is no name of a flavor: it {detail}"
        if not labels:
            yield f"{name} has no labels: state those that only its nodes have"
        for key, value in labels.items():
            if not isinstance(value, str) or not value:
                yield f"{name} has the value {value!r} for the label {key}: it must be text"
            elif detail := names.pair_fault(key, value):
                yield f"{name} {detail}"


def _overlaps(body: Mapping[str, Labels]) -> Iterator[str]:
    """Flavors that one node could have both of."""
    flavors = sorted(body)
    for i, one in enumerate(flavors):
        for other in flavors[i + 1 :]:
            if not any(body[one][key] != body[other][key] for key in body[one].keys() & body[other].keys()):
                yield f"a node could be both {one} and {other}: give both a label in whose value they differ"


def parse_order(
    value: object, known: Iterable[str], inherited: tuple[str, ...], faults: list[Fault]
) -> tuple[str, ...]:
    """The flavors that a queue may use: those it names, in this order, of those that the quotas above allow."""
    if value is None:
        return inherited
    allowed = inherited or tuple(known)
    stated = [part.strip() for part in value.split(",")] if isinstance(value, str) else [str(value)]
    if not allowed:
        faults.append((FLAVOR_ORDER, f"names {', '.join(stated)}, and the root has no attribute {FLAVORS}"))
    elif wrong := [name for name in stated if name not in allowed]:
        detail = (
            f"must be names of flavors, such as {','.join(allowed)}: {wrong[0]!r} is none that the quotas above allow"
        )
        faults.append((FLAVOR_ORDER, detail))
    else:
        return tuple(dict.fromkeys(stated))
    return inherited


def own_faults(path: str, most: Limits) -> Iterator[Fault]:
    """What one flavor may have is part of what all may have."""
    for name, high in sorted(most.items()):
        if flavor_of(name) and high > most.get(GPU, UNLIMITED):
            over = format_amount(GPU, most[GPU])
            yield (
                f"max.{name}",
                f"{path} has max {format_amount(name, high)}, more than its max {over}, which counts all",
            )


def has_min(least: Limits) -> bool:
    """Whether some flavor has a min."""
    return any(flavor_of(name) and amount for name, amount in least.items())


def sum_fault(path: str, least: Limits) -> Iterator[Fault]:
    """Where some flavor has a min, the min of the plain name is that of all flavors: no GPU is promised of no flavor."""
    mins = sum(amount for name, amount in least.items() if flavor_of(name))
    if mins != least.get(GPU, 0):
        own = format_amount(GPU, least[GPU]) if GPU in least else f"none of {GPU}"
        detail = f"{path} has min {own}, and its flavors {mins} together: where a flavor has a min, both are the same"
        yield f"min.{GPU}", detail


def shared_faults(path: str, ceiling: Limits, flavors: Iterable[str]) -> Iterator[Fault]:
    """Why a min of a flavor below this node could not be had: the plain name, used up by jobs on other flavors, denies it.

    ``ceiling`` is the least max from the node up.
    """
    if GPU not in ceiling:
        return
    maxes = {name: ceiling.get(amount_name(name), UNLIMITED) for name in flavors}
    if sum(maxes.values()) > ceiling[GPU]:
        listed = ", ".join(f"{name} {'without' if high == UNLIMITED else high}" for name, high in maxes.items())
        yield (
            f"max.{GPU}",
            f"{path} may have {format_amount(GPU, ceiling[GPU])}, less than its flavors may have together ({listed}): jobs on"
            " one could use up what is another's min below. Raise it, or lower the max of the flavors here",
        )


def kept_fault(path: str, least: Limits, lent: Limits) -> str:
    """What is wrong with a lendlimit beside mins of flavors: it would keep back GPUs of no flavor. Empty: nothing."""
    kept = {name: amount - lent.get(name, 0) for name, amount in least.items()}
    of_flavors = sum(amount for name, amount in kept.items() if flavor_of(name))
    if kept.get(GPU, 0) <= of_flavors:
        return ""
    plain = format_amount(GPU, kept[GPU])
    return f"{path} keeps back {plain}, and {of_flavors} of its flavors: where flavors have a min, keep back as much of them"


def stated_names(value: object) -> tuple[str, ...]:
    body = _parsed(value)
    return tuple(sorted(map(str, body))) if isinstance(body, dict) else ()


def _parsed(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None
