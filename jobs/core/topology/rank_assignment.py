"""In which order the pods of a gang are counted over its nodes, and what its ring crosses then.

Pod i of a role is rank i of it, whatever its kind calls that; so the order of nodes is the order of ranks. Equal gangs on
equal nodes are seated equally. It must not know how the nodes were found.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby

from jobs.core.topology import network
from jobs.core.topology.network import FAR, LEVELS, Domain, Place

Runs = list[tuple[str, int]]
"""(node, pods in a row)."""


def order(nodes: Sequence[str], where: Mapping[str, Domain]) -> dict[str, int]:
    """Each node's place in the order that goes switch by switch, the first node's own switch first."""
    distinct = list(dict.fromkeys(nodes))
    return {name: i for i, name in enumerate(network.rank_nodes(distinct, _places(distinct, where)))}


def runs(nodes: Sequence[str]) -> Runs:
    return [(name, len(list(same))) for name, same in groupby(nodes)]


def shared(nodes: Sequence[str], where: Mapping[str, Domain]) -> dict[str, str]:
    """The levels on which all of these nodes are in one domain, with its name."""
    domains: dict[str, str] = {}
    for level, name in enumerate(LEVELS):
        places = {where[node][: level + 1] if len(where.get(node, ())) > level else () for node in nodes}
        if len(places) == 1 and (place := places.pop()) and place[-1]:
            domains[name] = place[-1]
    return domains


def crossings(nodes: Sequence[str], where: Mapping[str, Domain]) -> int:
    """How many steps of the ring over these leave a switch; those to and from nodes of unknown place count."""
    cost = network.count_crossings(nodes, _places(nodes, where))
    return cost // FAR + cost % FAR


def _places(nodes: Sequence[str], where: Mapping[str, Domain]) -> dict[str, Place]:
    places = {name: network.place_of(where.get(name, ())) for name in nodes}
    return {name: place for name, place in places.items() if place is not None}
