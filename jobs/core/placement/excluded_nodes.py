"""Which nodes of a cluster are excluded for a gang, and whether it would fit with them: for explanations only."""

from dataclasses import replace

from jobs.core.gang.requirements import NodeClass
from jobs.core.placement.nodes.capacity_index import Bucket, Fleet, Site
from jobs.core.placement.nodes.fit import Prepared
from jobs.core.placement.nodes.node_selection import Group


def excluded(fleet: Fleet, site: Site, gang: Prepared) -> list[tuple[str, str]]:
    """(node, until when and why) of the nodes that would count if they were not excluded, by name."""
    nodes: dict[str, str] = {}
    for group in gang.groups:
        for bucket in site.buckets:
            until = group.shape.ask.exclusion(_class_of(fleet, bucket))
            if until and _slots(fleet, bucket, group):
                nodes |= dict.fromkeys(bucket.names, until)
    return sorted(nodes.items())


def words(nodes: list[tuple[str, str]]) -> str:
    """``node gpu-7 is excluded until ...``; of several the first, and how many there are."""
    name, until = nodes[0]
    if len(nodes) == 1:
        return f"node {name} is excluded {until}"
    return f"{len(nodes)} nodes are excluded, {name} {until}"


def would_suffice(fleet: Fleet, site: Site, gang: Prepared) -> bool:
    """Whether every role would find its nodes, counted by itself, if no node were excluded."""
    return all(_with_excluded(fleet, site, group) >= group.need for group in gang.groups)


def missing(fleet: Fleet, site: Site, gang: Prepared) -> dict[str, int]:
    """What the pods ask for that find no node without the excluded ones: devices, or all amounts of pods without any."""
    short: dict[str, int] = {}
    for group in gang.groups:
        pods = max(group.need - int(fleet.slots[site.index, 2 * group.column]), 0)
        request = {name: amount for name, amount in group.shape.ask.request if name != "pods"}
        devices = {name: amount for name, amount in request.items() if "/" in name} or request
        for name, amount in devices.items() if pods else ():
            short[name] = short.get(name, 0) + pods * amount
    return short


def _with_excluded(fleet: Fleet, site: Site, group: Group) -> int:
    more = sum(
        _slots(fleet, bucket, group) * len(bucket.names)
        for bucket in site.buckets
        if bucket.names and group.shape.ask.exclusion(_class_of(fleet, bucket))
    )
    return int(fleet.slots[site.index, 2 * group.column]) + more


def _slots(fleet: Fleet, bucket: Bucket, group: Group) -> int:
    """The pods that one of these nodes would hold."""
    ask, kind = replace(group.shape.ask, avoids=()), replace(_class_of(fleet, bucket), usable=True, excluded="")
    if ask.refusal(kind) is not None:
        return 0
    free = fleet.states.amounts(bucket.state.free)
    fits = min((max(free.get(r, 0), 0) // n for r, n in group.shape.ask.request if n), default=group.need)
    return min(fits, 1) if group.shape.lone else fits


def _class_of(fleet: Fleet, bucket: Bucket) -> NodeClass:
    return fleet.states.classes[bucket.state.kind]
