"""The capacity of the fleet: nodes in buckets of equal state, sums per cluster and per network domain.

A node is base (what its cluster reports) minus held (what the fleet has placed). Every change is a move of nodes from one
bucket to another and one addition per cluster and domain, whatever the number of nodes. Bucket, state and sums follow from
bases and holds alone: the order of updates does not matter, equal fleets give equal answers. It must not know gangs.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jobs.core.gang.requirements import ANY_NAME, CLUSTER, NodeClass
from jobs.core.placement.nodes.node_states import Shape, State, States, Table, Vector, minus

SHAPES_KEPT = 128
"""Columns counted at a time; a fleet asks far fewer shapes in an hour."""
MANY_STATES = 20_000
"""Buckets made before those without nodes are looked for."""

GONE = NodeClass((), (), (), usable=False)


class Bucket:
    """Nodes of one cluster and domain in one state, by name."""

    __slots__ = ("index", "names", "nexts", "path", "state")

    def __init__(self, state: State, path: tuple[int, ...], index: int) -> None:
        self.state = state
        self.path = path
        self.index = index
        self.names: list[str] = []
        self.nexts: dict[tuple[Vector, int], Bucket] = {}


@dataclass(frozen=True, slots=True)
class Levels:
    """A site's domains side by side, by name; those without one only as parents of others."""

    index: NDArray[np.int64]
    depth: NDArray[np.int64]
    path: Mapping[int, tuple[str, ...]]
    inside: Mapping[tuple[str, ...], Sequence[tuple[str, ...]]]
    """The domains one level narrower."""

    @classmethod
    def from_domains(cls, domains: Mapping[tuple[str, ...], int]) -> "Levels":
        inside: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for path in sorted(domains):
            inside.setdefault(path[:-1], []).append(path)
        named = [path for path in sorted(domains) if path[-1]]
        index = np.array([domains[path] for path in named], dtype=np.int64)
        depth = np.array([len(path) for path in named], dtype=np.int64)
        return cls(index, depth, {domain: path for path, domain in domains.items()}, inside)


class Site:
    """One cluster's nodes."""

    __slots__ = (
        "_levels",
        "base",
        "buckets",
        "domains",
        "index",
        "name",
        "named",
        "paths",
        "rows",
        "sizes",
        "table",
        "where",
    )

    def __init__(self, name: str, index: int) -> None:
        self.name = name
        self.index = index
        self.where: dict[str, Bucket] = {}
        self.base: dict[str, Vector] = {}
        self.table: dict[tuple[int, tuple[int, ...]], Bucket] = {}
        self.domains: dict[tuple[str, ...], int] = {}
        self._levels: Levels | None = None
        self.named: dict[tuple[int, ...], tuple[str, ...]] = {}
        """Path → the names it stands for."""
        self.clear()

    @property
    def levels(self) -> Levels:
        if self._levels is None:
            self._levels = Levels.from_domains(self.domains)
        return self._levels

    def add_domain(self, prefix: tuple[str, ...], path: tuple[int, ...], index: int) -> None:
        self.domains[prefix] = index
        self.named[(*path, index)] = prefix
        self._levels = None

    def clear(self) -> None:
        self.buckets: list[Bucket] = []
        self.rows: NDArray[np.int64] = np.zeros(16, dtype=np.int64)
        self.sizes: NDArray[np.int64] = np.zeros(16, dtype=np.int64)
        self.paths: NDArray[np.int64] = np.zeros((16, 0), dtype=np.int64)
        self.table.clear()

    def bucket(self, state: State, path: tuple[int, ...]) -> Bucket:
        bucket = self.table.get((state.row, path))
        if bucket is not None:
            return bucket
        return self.put(Bucket(state, path, 0), state)

    def put(self, bucket: Bucket, state: State) -> Bucket:
        """Into the tables, as it is."""
        index, path = len(self.buckets), bucket.path
        if index >= len(self.rows):
            self.rows, self.sizes = np.resize(self.rows, 2 * index), np.resize(self.sizes, 2 * index)
            self.paths = np.resize(self.paths, (2 * index, self.paths.shape[1]))
        if len(path) > self.paths.shape[1]:
            wider = np.full((len(self.rows), len(path)), -1, dtype=np.int64)
            wider[:, : self.paths.shape[1]] = self.paths
            self.paths = wider
        self.rows[index], self.sizes[index] = state.row, len(bucket.names)
        self.paths[index] = -1
        self.paths[index, : len(path)] = path
        bucket.state, bucket.index = state, index
        self.table[state.row, path] = bucket
        self.buckets.append(bucket)
        return bucket


class Fleet:
    def __init__(self) -> None:
        self.states = States()
        self.sites: dict[str, Site] = {}
        self.order: list[Site | None] = []
        self.slots: Table = np.zeros((16, 16), dtype=np.int64)
        """Pods that fit, ``[cluster, 2 * column]``, and of those on whole nodes, ``[cluster, 2 * column + 1]``."""
        self.near: Table = np.zeros((16, 16), dtype=np.int64)
        """The same per network domain."""
        self.room: Table = np.zeros((16, 4), dtype=np.int64)
        """Free on usable nodes, ``[cluster, resource]``."""
        self.capacity: Table = np.zeros((16, 4), dtype=np.int64)
        self.promised: Table = np.zeros((16, 4), dtype=np.int64)
        """Promised to gangs without naming nodes, ``[cluster, resource]``."""
        self.domains: list[tuple[int, int]] = []
        """(cluster, level) of each domain."""
        self._placed: NDArray[np.int64] | None = None
        self._made, self._tidy_at = 0, MANY_STATES

    @property
    def placed(self) -> NDArray[np.int64]:
        """`domains` as a table, ``[domain, (cluster, level)]``."""
        if self._placed is None:
            self._placed = np.array(self.domains, dtype=np.int64)
        return self._placed

    def site(self, name: str) -> Site:
        site = self.sites.get(name)
        if site is None:
            index = self.order.index(None) if None in self.order else len(self.order)
            site = self.sites[name] = Site(name, index)
            self.order[index : index + 1] = [site]
            if index >= len(self.slots):
                self.slots, self.room = _longer(self.slots), _longer(self.room)
                self.capacity, self.promised = _longer(self.capacity), _longer(self.promised)
        return site

    def drop(self, name: str) -> None:
        site = self.sites.pop(name, None)
        if site is None:
            return
        self.order[site.index] = None
        for table in (self.slots, self.room, self.capacity, self.promised):
            table[site.index] = 0
        for domain in site.domains.values():
            self.near[domain] = 0
            self.domains[domain] = (-1, -1)
        self._placed = None

    def set_node(self, cluster: str, name: str, node: NodeClass, base: Vector, domain: Sequence[str] = ()) -> None:
        """Takes what the cluster reports of a node; what is held on it stays held."""
        site, states = self.site(cluster), self.states
        allocatable = states.vector(dict(node.allocatable))
        old = site.where.get(name)
        held: Vector = ()
        if old is not None:
            held = minus(site.base[name], old.state.free, 1)
            self._capacity(site, old.state, -1)
        state = states.state(states.kind(node), minus(base, held, 1))
        path = self._path(site, tuple(domain))
        self.fit_tables()
        target = site.bucket(state, path)
        self._made += 1
        site.base[name] = base
        if node.usable:
            self.capacity[site.index, : len(allocatable)] += np.array(allocatable, dtype=np.int64)
        if old is None:
            self._enter(site, target, name)
        else:
            self._move(site, old, [name], target)

    def drop_node(self, cluster: str, name: str) -> None:
        """Gone; with something held on it, it stays as a node that takes nothing until the hold ends."""
        site = self.sites.get(cluster)
        bucket = site.where.get(name) if site else None
        if site is None or bucket is None:
            return
        if self.held(cluster, name):
            self.set_node(cluster, name, GONE, ())
            return
        self._capacity(site, bucket.state, -1)
        self._count(site, bucket, -1)
        _leave(bucket.names, [name])
        del site.where[name], site.base[name]

    def name_node(self, cluster: str, name: str) -> None:
        """Moves the node to a class of its own name."""
        site = self.sites[cluster]
        bucket = site.where[name]
        node = self.states.classes[bucket.state.kind]
        labels = {key: name if value == ANY_NAME else value for key, value in node.labels} | {CLUSTER: cluster}
        named = replace(node, labels=tuple(sorted(labels.items())))
        state = self.states.state(self.states.kind(named), bucket.state.free)
        self.fit_tables()
        self._move(site, bucket, [name], site.bucket(state, bucket.path))

    def take(self, site: Site, bucket: Bucket, names: list[str], request: Vector, times: int) -> Bucket:
        """``times`` pods more on each of these nodes of one bucket; negative gives back. Names are sorted."""
        target = bucket.nexts.get((request, times))
        if target is None:
            state = self.states.state(bucket.state.kind, minus(bucket.state.free, request, times))
            self.fit_tables()
            self._made += 1
            target = bucket.nexts[request, times] = site.bucket(state, bucket.path)
        self._move(site, bucket, names, target)
        return target

    def make_room(self, shapes: int) -> None:
        """Before as many new shapes are counted: forgets the counted ones when they were too many together."""
        if len(self.states.shapes) + shapes > SHAPES_KEPT:
            self.states.forget_shapes()

    def column(self, shape: Shape) -> int:
        """The column of ``shape``, counted now if it is new."""
        places = self.states.column(shape)
        if places is not None:
            return places
        column = self.states.add(shape)
        self.fit_tables()
        pair = slice(2 * column, 2 * column + 2)
        self.slots[:, pair] = self.near[:, pair] = 0
        for site in self.sites.values():
            used = len(site.buckets)
            each = self.states.counts[site.rows[:used], pair] * site.sizes[:used, None]
            self.slots[site.index, pair] = each.sum(axis=0)
            for level in range(site.paths.shape[1]):
                inside = site.paths[:used, level] >= 0
                np.add.at(self.near[:, pair], site.paths[:used, level][inside], each[inside])
        return column

    def tidy(self) -> None:
        """Forgets states and buckets without nodes, once many were made: between two changes only."""
        if self._made < self._tidy_at:
            return
        live = {site: [bucket for bucket in site.buckets if bucket.names] for site in self.sites.values()}
        states = {bucket.state.row: bucket.state for buckets in live.values() for bucket in buckets}
        renumbered = self.states.keep(list(states.values()))
        for site, buckets in live.items():
            site.clear()
            for bucket in buckets:
                bucket.nexts.clear()
                site.put(bucket, renumbered[bucket.state.row])
        self._made, self._tidy_at = 0, max(MANY_STATES, 4 * sum(map(len, live.values())))

    def held(self, cluster: str, name: str) -> Vector:
        site = self.sites[cluster]
        return minus(site.base[name], site.where[name].state.free, 1)

    def _path(self, site: Site, domain: tuple[str, ...]) -> tuple[int, ...]:
        path: list[int] = []
        for level in range(len(domain)):
            prefix = domain[: level + 1]
            if prefix not in site.domains:
                site.add_domain(prefix, tuple(path), len(self.domains))
                self.domains.append((site.index if prefix[-1] else -1, level))
                self._placed = None
                if len(self.domains) > len(self.near):
                    self.near = _longer(self.near)
            path.append(site.domains[prefix])
        return tuple(path)

    def _capacity(self, site: Site, state: State, times: int) -> None:
        node = self.states.classes[state.kind]
        if node.usable:
            allocatable = self.states.vector(dict(node.allocatable))
            self.capacity[site.index, : len(allocatable)] += times * np.array(allocatable, dtype=np.int64)

    def _enter(self, site: Site, target: Bucket, name: str) -> None:
        insort(target.names, name)
        site.where[name] = target
        self._count(site, target, 1)

    def _count(self, site: Site, bucket: Bucket, nodes: int) -> None:
        site.sizes[bucket.index] += nodes
        row = bucket.state.row
        change = np.multiply(self.states.counts[row], nodes, dtype=np.int64)
        self.slots[site.index] += change
        for domain in bucket.path:
            self.near[domain] += change
        self.room[site.index] += nodes * self.states.free[row]

    def _move(self, site: Site, source: Bucket, names: list[str], target: Bucket) -> None:
        if source is target:
            return
        many = len(names)
        _leave(source.names, names)
        if many == 1:
            insort(target.names, names[0])
        else:
            target.names.extend(names)
            target.names.sort()
        for name in names:
            site.where[name] = target
        site.sizes[source.index] -= many
        site.sizes[target.index] += many
        old, new, states = source.state.row, target.state.row, self.states
        change = np.subtract(states.counts[new], states.counts[old], dtype=np.int64)
        freed = states.free[new] - states.free[old]
        if many > 1:
            change, freed = change * many, freed * many
        self.slots[site.index] += change
        self.room[site.index] += freed
        if source.path == target.path:
            for domain in source.path:
                self.near[domain] += change
        else:
            for domain in source.path:
                self.near[domain] -= np.multiply(states.counts[old], many, dtype=np.int64)
            for domain in target.path:
                self.near[domain] += np.multiply(states.counts[new], many, dtype=np.int64)

    def fit_tables(self) -> None:
        """As wide as the states' tables."""
        columns, resources = self.states.counts.shape[1], self.states.free.shape[1]
        if columns > self.slots.shape[1]:
            self.slots, self.near = _wider(self.slots, columns), _wider(self.near, columns)
        if resources > self.room.shape[1]:
            self.room, self.capacity = _wider(self.room, resources), _wider(self.capacity, resources)
            self.promised = _wider(self.promised, resources)


def _leave(names: list[str], gone: list[str]) -> None:
    if len(gone) == 1:
        del names[bisect_left(names, gone[0])]
    elif names[len(gone) - 1] == gone[-1]:
        del names[: len(gone)]
    else:
        away = set(gone)
        names[:] = [name for name in names if name not in away]


def _longer(table: Table) -> Table:
    return np.concatenate((table, np.zeros_like(table)))


def _wider(table: Table, width: int) -> Table:
    return np.concatenate((table, np.zeros((len(table), width - table.shape[1]), dtype=np.int64)), axis=1)
