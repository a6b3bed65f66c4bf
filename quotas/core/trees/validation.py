"""The rules of min and max: within one node, against the ancestors, and over the children of one node.

Each check yields (field, what is wrong) with the quota's path and both numbers. Pure arithmetic on whole units.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fleet.kube import names
from fleet.kube.quantities import QuantityError
from quotas.core.trees.amounts import canonical_name, exact_amount, format_amount

Limits = Mapping[str, int]
Fault = tuple[str, str]


NameFault = Callable[[str], str | None]
"""What is wrong with a name of another kind than Kubernetes' resources; None: it is one of those."""


def parse_limits(stated: Mapping[str, Any], special: NameFault = lambda _: None) -> tuple[Limits, list[Fault]]:
    """Quantities as whole units under canonical names; faults are (resource, what is wrong)."""
    read: dict[str, int] = {}
    faults: list[Fault] = []
    for resource, value in stated.items():
        name = canonical_name(resource)
        detail = special(resource)
        if detail is None and names.pair_fault(resource, ""):
            detail = "is no name of a resource"
        if detail:
            faults.append((resource, detail))
        elif name in read:
            faults.append((resource, f"is another spelling of {name}, which is stated too"))
        else:
            try:
                read[name] = exact_amount(name, value)
            except QuantityError as e:
                faults.append((resource, str(e)))
    return read, faults


def own_faults(path: str, least: Limits, most: Limits, *, root: bool) -> Iterator[Fault]:
    if root and not most:
        yield "max", f"{path} is the total of the fleet: state at least one resource, and the same as min"
    for resource in sorted({*least, *most} if root else least):
        low, high = least.get(resource), most.get(resource)
        if root and low != high:
            yield f"max.{resource}", f"{path} must have the same min and max: {_or_none(resource, low, high)}"
        elif low is not None and high is None:
            yield f"min.{resource}", f"{path} has min {format_amount(resource, low)} and no max of it: state both"
        elif low is not None and high is not None and low > high:
            yield (
                f"min.{resource}",
                f"{path} has min {format_amount(resource, low)}, more than its max {format_amount(resource, high)}",
            )


def ceiling_faults(path: str, most: Limits, parent: str, ceiling: Limits) -> Iterator[Fault]:
    """``ceiling`` is the least max from the parent up: an ancestor's limit holds where the parent states none."""
    for resource, high in sorted(most.items()):
        if resource in ceiling and high > ceiling[resource]:
            over = format_amount(resource, ceiling[resource])
            yield (
                f"max.{resource}",
                f"{path} has max {format_amount(resource, high)}, more than {parent} may have: {over}",
            )


def sum_faults(path: str, least: Limits, children: Sequence[Limits]) -> Iterator[Fault]:
    for resource in sorted({name for child in children for name in child}):
        total = sum(child.get(resource, 0) for child in children)
        if total > least.get(resource, 0):
            own = format_amount(resource, least.get(resource, 0))
            yield (
                f"min.{resource}",
                f"the children of {path} have min {format_amount(resource, total)} together, more than its {own}",
            )


def lower_limits(one: Limits, other: Limits) -> Limits:
    """The lower of both, resource by resource; what one does not state the other decides."""
    return {name: min(each[name] for each in (one, other) if name in each) for name in {*one, *other}}


def _or_none(resource: str, low: int | None, high: int | None) -> str:
    least, most = ("none" if amount is None else format_amount(resource, amount) for amount in (low, high))
    return f"min is {least}, max is {most}{f' ({resource})' if None in (low, high) else ''}"
