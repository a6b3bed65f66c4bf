"""A gang on one cluster's nodes: which nodes take how many pods of it, or that they cannot.

Pods that all ask alike fit if and only if the counts say so. They go to one node when one holds them (the one that is left
with least, a broken node before a whole one), else to the nodes that hold most, which is the fewest nodes; inside the
smallest network domain that holds them all. Pods of several shapes go through `packing`. Nothing is changed here.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobs.core.placing import packing
from jobs.core.placing.asks import HOSTNAME, Demand
from jobs.core.placing.fleet import Bucket, Fleet, Site
from jobs.core.placing.packing import Bin, Problem, Use
from jobs.core.placing.states import Shape, Table, Vector

_BREAKING = 1e9
"""Worth more than any node: a whole node is broken only when no broken one will do."""


@dataclass(frozen=True, slots=True)
class Load:
    """``each`` pods of one shape on each of these nodes."""

    shape: int
    names: tuple[str, ...]
    each: int


@dataclass(frozen=True, slots=True)
class Group:
    """Parts of a gang that ask alike."""

    parts: tuple[int, ...]
    need: int
    shape: Shape
    column: int
    asked: Vector


@dataclass(frozen=True, slots=True)
class Prepared:
    """A demand in the fleet's own columns, good until the columns are forgotten."""

    demand: Demand
    groups: tuple[Group, ...]
    total: Table
    """``[resource]``, as long as the axis was."""
    possible: bool
    """Every resource it asks is known somewhere."""
    apart: frozenset[tuple[int, int]]
    zones: tuple[tuple[str, frozenset[tuple[int, int]]], ...]
    devices: int
    """Of one pod of the only group."""
    scarce: int
    """Index of the resource that decides how full a cluster is for it."""

    @property
    def alike(self) -> bool:
        return len(self.groups) == 1 and not self.zones


def prepare(fleet: Fleet, demand: Demand) -> Prepared:
    """Counts the demand's shapes if they are new."""
    states = fleet.states
    rules = {name for rule in demand.apart for name in (rule.one, rule.other)}
    together: dict[object, list[int]] = {}
    for i, part in enumerate(demand.parts):
        together.setdefault((part.ask, part.role if part.role in rules else None), []).append(i)
    member = {demand.parts[i].role: g for g, parts in enumerate(together.values()) for i in parts}
    pairs: dict[str, set[tuple[int, int]]] = {}
    for rule in demand.apart:
        one, other = sorted((member[rule.one], member[rule.other]))
        pairs.setdefault(rule.key, set()).add((one, other))
    apart = frozenset(pairs.pop(HOSTNAME, ()))
    groups = []
    for g, parts in enumerate(together.values()):
        shape = Shape(demand.parts[parts[0]].ask, lone=(g, g) in apart)
        need = sum(demand.parts[i].replicas for i in parts)
        known = all(name in states.index for name, _ in shape.ask.request)
        asked = states.vector(dict(shape.ask.request)) if known else ()
        groups.append(Group(tuple(parts), need, shape, fleet.column(shape), asked))
    total = demand.total
    first = demand.parts[0].ask.request
    return Prepared(
        demand=demand,
        groups=tuple(groups),
        total=np.array([total.get(name, 0) for name in states.names], dtype=np.int64),
        possible=all(name in states.index for name in total),
        apart=apart,
        zones=tuple((key, frozenset(found)) for key, found in sorted(pairs.items())),
        devices=sum(amount for name, amount in first if "/" in name),
        scarce=max(
            (i for name, i in states.index.items() if total.get(name)),
            key=lambda i: (total[states.names[i]] * states.weight(states.names[i]), -i),
            default=0,
        ),
    )


def place(fleet: Fleet, site: Site, gang: Prepared) -> list[Load] | None:
    """Where the gang goes on this cluster; None: proven to fit nowhere. Raises `packing.Unsure`."""
    for domain in _domains(fleet, site, gang):
        found = _alike(fleet, site, gang, domain) if gang.alike else _mixed(fleet, site, gang, domain)
        if found is not None:
            return found
    return None


def _domains(fleet: Fleet, site: Site, gang: Prepared) -> Iterable[tuple[int, int] | None]:
    """(level, domain) that may hold it, smallest first; None is the whole cluster."""
    within = gang.demand.within
    if site.domains and not (gang.alike and _one_node(fleet, site, gang)):
        floor = (within.level or 0) if within.required else 0
        yield from _sufficient(fleet, site, gang, floor)
    elif within.required and not site.domains:
        return
    if not within.required or (gang.alike and _one_node(fleet, site, gang)):
        yield None


def _sufficient(fleet: Fleet, site: Site, gang: Prepared, floor: int) -> list[tuple[int, int]]:
    """Domains with enough slots for every group by itself, deepest first, then the least left, then by name."""
    found = []
    for path, domain in site.domains.items():
        spare = [int(fleet.near[domain, 2 * g.column]) - g.need for g in gang.groups]
        if len(path) > floor and min(spare) >= 0:
            found.append((-len(path), sum(spare), path, domain))
    return [(-depth - 1, domain) for depth, _, _, domain in sorted(found)]


def _one_node(fleet: Fleet, site: Site, gang: Prepared) -> bool:
    group = gang.groups[0]
    fits = fleet.states.counts[site.rows[: len(site.buckets)], 2 * group.column]
    return bool(((fits >= group.need) & (site.sizes[: len(site.buckets)] > 0)).any())


def _alike(fleet: Fleet, site: Site, gang: Prepared, domain: tuple[int, int] | None) -> list[Load] | None:
    states, group, used = fleet.states, gang.groups[0], len(site.buckets)
    rows = site.rows[:used]
    fits = states.counts[rows, 2 * group.column] * (site.sizes[:used] > 0)
    if domain is not None:
        fits *= site.paths[:used, domain[0]] == domain[1]
    need, loads = group.need, []
    taken: dict[int, int] = {}
    while need:
        enough = (fits >= need).nonzero()[0]
        if len(enough):
            bucket = _least_left(fleet, site, gang, enough, need)
            start = taken.get(bucket.index, 0)
            loads.append(Load(0, tuple(bucket.names[start : start + 1]), need))
            return loads
        most = int(fits.max(initial=0))
        if not most:
            return None
        bucket = _least_left(fleet, site, gang, (fits == most).nonzero()[0], most)
        start = taken.get(bucket.index, 0)
        nodes = min(len(bucket.names) - start, need // most)
        loads.append(Load(0, tuple(bucket.names[start : start + nodes]), most))
        taken[bucket.index] = start + nodes
        need -= nodes * most
        if start + nodes == len(bucket.names):
            fits[bucket.index] = 0
    return loads


def _least_left(fleet: Fleet, site: Site, gang: Prepared, indices: NDArray[np.int64], pods: int) -> Bucket:
    """Of these buckets the one whose nodes keep least after ``pods`` pods; equal ones by name."""
    if len(indices) == 1:
        return site.buckets[int(indices[0])]
    states = fleet.states
    rows = site.rows[indices]
    left = states.worth[rows] + _BREAKING * (states.devices[rows] > pods * gang.devices)
    best = indices[left <= left.min() + 1e-9]
    if len(best) == 1:
        return site.buckets[int(best[0])]
    return min((site.buckets[int(i)] for i in best), key=lambda bucket: bucket.names[0])


def _mixed(fleet: Fleet, site: Site, gang: Prepared, domain: tuple[int, int] | None) -> list[Load] | None:
    buckets = [b for b in site.buckets if b.names and (domain is None or _inside(b, domain))]
    buckets.sort(key=lambda bucket: bucket.names[0])
    states, width = fleet.states, len(fleet.states.names)
    bins = []
    for bucket in buckets:
        node = states.classes[bucket.state.kind]
        labels = dict(node.labels)
        admits = tuple(bool(states.counts[bucket.state.row, 2 * g.column]) for g in gang.groups)
        zones = tuple(labels.get(key) for key, _ in gang.zones)
        free = (*bucket.state.free, *(0,) * (width - len(bucket.state.free)))
        if any(admits):
            bins.append((bucket, Bin(len(bucket.names), tuple(max(f, 0) for f in free), admits, zones)))
    asked = tuple((*g.asked, *(0,) * (width - len(g.asked))) for g in gang.groups)
    problem = Problem(
        needs=tuple(g.need for g in gang.groups),
        asked=asked,
        bins=tuple(made for _, made in bins),
        apart=gang.apart,
        zoned=tuple(pairs for _, pairs in gang.zones),
    )
    uses = packing.pack(problem) if bins else None
    return None if uses is None else _loads([bucket for bucket, _ in bins], uses)


def _inside(bucket: Bucket, domain: tuple[int, int]) -> bool:
    return len(bucket.path) > domain[0] and bucket.path[domain[0]] == domain[1]


def _loads(buckets: list[Bucket], uses: list[Use]) -> list[Load]:
    taken: dict[int, int] = {}
    loads = []
    for use in uses:
        start = taken.get(use.bin, 0)
        names = tuple(buckets[use.bin].names[start : start + use.nodes])
        taken[use.bin] = start + use.nodes
        loads += [Load(shape, names, each) for shape, each in enumerate(use.pods) if each]
    return loads
