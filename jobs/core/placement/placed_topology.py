"""What is kept of where a gang was placed: its nodes in the order of ranks, which domains they share, what the ring crosses.

A plain value, written with the binding and read where the job is sent or shown. It must not know members or manifests.
"""

from typing import Any

from jobs.core.placement.types import Assignment
from jobs.core.topology import network, rank_assignment

NOT_MET = "TopologyNotMet"


def topology_to_store(assignment: Assignment) -> dict[str, Any]:
    """As JSON; empty where no node was chosen. ``nodes`` has for each role runs of ``[node, pods]``: pod i is rank i."""
    if not assignment.loads:
        return {}
    nodes = assignment.nodes()
    ring = ring_of(assignment, nodes)
    shared = rank_assignment.shared(ring, assignment.where)
    return {
        "nodes": {role: [list(run) for run in rank_assignment.runs(names)] for role, names in nodes.items()},
        "shared": shared,
        "switches": len({network.place_of(assignment.where[name]) for name in ring if name in assignment.where}),
        "crossings": rank_assignment.crossings(ring, assignment.where) if assignment.where else 0,
        "met": _is_met(assignment, ring, shared),
    }


def ring_of(assignment: Assignment, nodes: dict[str, list[str]]) -> list[str]:
    """The nodes of the pods that reduce their gradients together: those with devices, or all when none has any."""
    devices = [p.role for p in assignment.demand.parts if any("/" in name for name, _ in p.ask.request)]
    return [name for role in devices or nodes for name in nodes.get(role, ())]


def not_met(assignment: Assignment) -> str:
    """The message when a preference for a domain was passed over; empty when there was none or it was met."""
    level = assignment.demand.within.level
    if level is None or not assignment.loads or topology_to_store(assignment)["met"]:
        return ""
    names = topology_to_store(assignment)
    message = f"no {network.LEVELS[level]} of {assignment.cluster} holds it whole"
    if not names["switches"]:
        return f"{message}: its nodes have no labels that say where they are"
    return (
        f"{message}: it goes over {names['switches']} access switches, its ring leaves one {names['crossings']} times"
    )


def _is_met(assignment: Assignment, ring: list[str], shared: dict[str, str]) -> bool:
    level = assignment.demand.within.level
    return level is None or len(set(ring)) == 1 or network.LEVELS[level] in shared
