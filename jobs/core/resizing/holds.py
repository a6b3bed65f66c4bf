"""What an open hold still holds of a job that became smaller. Its nodes are in the order of choice: the last go first."""

from collections.abc import Mapping, Sequence
from typing import Any

Amounts = Mapping[str, int]
Nodes = Sequence[Sequence[Any]]
"""``[[amounts, [names]]]``: what each of the named nodes holds."""


def less(nodes: Nodes, request: Amounts, pods: int) -> list[list[Any]]:
    """The nodes without the share of ``pods`` pods that each ask ``request``; what pods of other requests hold stays."""
    entries = [(dict(amounts), str(name)) for amounts, names in nodes for name in names]
    for index in reversed(range(len(entries))):
        amounts, name = entries[index]
        while pods and _holds_alike(amounts, request):
            amounts = {resource: amount - request.get(resource, 0) for resource, amount in amounts.items()}
            pods -= 1
        entries[index] = amounts, name
    return [[amounts, [name]] for amounts, name in entries if any(amounts.values())]


def minus(amounts: Amounts, request: Amounts, pods: int) -> dict[str, int]:
    """The sum without these pods, never below nothing."""
    return {resource: max(amount - pods * request.get(resource, 0), 0) for resource, amount in amounts.items()}


def plus(amounts: Amounts, more: Amounts) -> dict[str, int]:
    return {resource: amounts.get(resource, 0) + more.get(resource, 0) for resource in {**amounts, **more}}


def _holds_alike(amounts: Amounts, request: Amounts) -> bool:
    """Whether the node holds a whole number of such pods, at least one."""
    asked = {resource: amount for resource, amount in request.items() if amount}
    held = {resource: amount for resource, amount in amounts.items() if amount}
    if not asked or asked.keys() != held.keys():
        return False
    pods = {divmod(held[resource], amount) for resource, amount in asked.items()}
    return len(pods) == 1 and next(iter(pods))[1] == 0
