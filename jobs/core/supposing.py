"""The world as it would be: a cluster lost, nodes more, jobs more. Pure; every function gives a new world.

What then starts is for the cycle to say. The ledger is shared with the world it came from: a cycle leaves it as it was.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from jobs.core.reasons import Amounts
from jobs.core.world import Axis, Cluster, Gang, Vector, World


def without_cluster(world: World, name: str) -> World:
    return replace(world, clusters=tuple(cluster for cluster in world.clusters if cluster.name != name))


def with_waiting(world: World, gangs: Iterable[Gang]) -> World:
    return replace(world, waiting=(*world.waiting, *gangs))


def with_nodes(world: World, name: str, count: int, offered: Amounts) -> World:
    """``count`` empty nodes more on the cluster; a resource that nobody offers yet becomes known."""
    world = _widened(world, offered)
    one = world.axis.vector(offered)
    return replace(world, clusters=tuple(_grown(c, one, count) if c.name == name else c for c in world.clusters))


def _grown(cluster: Cluster, one: Vector, count: int) -> Cluster:
    more = np.tile(one, (count, 1))
    return replace(
        cluster,
        nodes=np.vstack([cluster.nodes, more]),
        names=(*cluster.names, *(f"new-{i}" for i in range(count))),
        capacity=cluster.capacity + count * one,
        free=cluster.free + count * one,
    )


def _widened(world: World, offered: Amounts) -> World:
    new = sorted(offered.keys() - world.axis.index.keys())
    if not new:
        return world
    axis, pad = Axis.of((*world.axis.names, *new)), (0, len(new))
    clusters = tuple(
        replace(
            cluster,
            nodes=np.pad(cluster.nodes, ((0, 0), pad)),
            capacity=np.pad(cluster.capacity, pad),
            free=np.pad(cluster.free, pad),
        )
        for cluster in world.clusters
    )
    return replace(world, axis=axis, clusters=clusters)
