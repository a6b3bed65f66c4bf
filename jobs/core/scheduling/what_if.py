"""The world as it would be: a cluster lost, nodes more, jobs more. Pure; every function gives a new world.

What then starts is for the cycle to say. The ledger is shared with the world it came from: a cycle leaves it as it was.
"""

from collections.abc import Iterable
from dataclasses import replace

from jobs.core.admission.snapshot import Site, World
from jobs.core.gang.types import Gang
from jobs.core.placement.types import NodeFacts
from jobs.core.reasons import Amounts


def without_cluster(world: World, name: str) -> World:
    return replace(world, sites=tuple(site for site in world.sites if site.member.name != name))


def with_waiting(world: World, gangs: Iterable[Gang]) -> World:
    return replace(world, waiting=(*world.waiting, *gangs))


def with_nodes(world: World, name: str, count: int, offered: Amounts) -> World:
    """``count`` empty nodes more on the cluster."""
    more = tuple(NodeFacts(f"new-{i}", offered) for i in range(count))
    return replace(world, sites=tuple(_grown(site, more) if site.member.name == name else site for site in world.sites))


def _grown(site: Site, more: tuple[NodeFacts, ...]) -> Site:
    return replace(site, nodes=(*site.nodes, *more))
