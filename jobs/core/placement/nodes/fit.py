"""A gang on one cluster's nodes: which nodes take how many pods of it, or that they cannot.

Prepares the gang in the fleet's own columns, goes through the network domains from the smallest that may hold it, and asks
`picking`, then, for several roles, `packing`: the answer is exact. Nothing is changed here.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from jobs.core.gang.requirements import HOSTNAME, GangRequirements
from jobs.core.placement.nodes import packing, topology_split
from jobs.core.placement.nodes.capacity_index import Bucket, Fleet, Site
from jobs.core.placement.nodes.node_selection import Costing, Group, Load, Picker, by_worth
from jobs.core.placement.nodes.node_states import Shape, Table
from jobs.core.placement.nodes.packing import Bin, Problem, Use


@dataclass(frozen=True, slots=True)
class Prepared:
    """A demand in the fleet's own columns, good until the columns are forgotten."""

    demand: GangRequirements
    groups: tuple[Group, ...]
    total: Table
    """``[resource]``, as long as the axis was."""
    possible: bool
    """Every resource it asks is known somewhere."""
    apart: frozenset[tuple[int, int]]
    zones: tuple[tuple[str, frozenset[tuple[int, int]]], ...]
    scarce: int
    """Index of the resource that decides how full a cluster is for it."""

    @property
    def alike(self) -> bool:
        return len(self.groups) == 1 and not self.zones


def prepare_demand(fleet: Fleet, demand: GangRequirements) -> Prepared:
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
        request = states.vector(dict(shape.ask.request)) if known else ()
        worth = sum(amount * states.weight(name) for name, amount in shape.ask.request)
        devices = sum(amount for name, amount in shape.ask.request if "/" in name)
        groups.append(Group(tuple(parts), need, shape, fleet.column(shape), request, worth, devices))
    total = demand.total
    return Prepared(
        demand=demand,
        groups=tuple(groups),
        total=np.array([total.get(name, 0) for name in states.names], dtype=np.int64),
        possible=all(name in states.index for name in total),
        apart=apart,
        zones=tuple((key, frozenset(zone_names)) for key, zone_names in sorted(pairs.items())),
        scarce=max(
            (i for name, i in states.index.items() if total.get(name)),
            key=lambda i: (total[states.names[i]] * states.weight(states.names[i]), -i),
            default=0,
        ),
    )


def place_gang(fleet: Fleet, site: Site, gang: Prepared, costing: Costing | None = None) -> list[Load] | None:
    """Where the gang goes on this cluster; None: proven to fit nowhere. Raises `packing.Unsure`."""
    narrow = bool(site.domains or gang.demand.within.required) and _one_node(fleet, site, gang)
    for domain in _domains(fleet, site, gang, narrow=narrow):
        placement = None if narrow else _place_within(fleet, site, gang, domain, costing)
        if placement is None:
            placement = _place_quickly(Picker(fleet, site, domain, costing), gang)
        if placement is None and not gang.alike:
            placement = _place_mixed(fleet, site, gang, domain)
        if placement is not None:
            return placement
    return None


def _domains(fleet: Fleet, site: Site, gang: Prepared, *, narrow: bool) -> Iterable[tuple[int, int] | None]:
    """(level, domain) that may hold it, smallest first; None is the whole cluster. ``narrow``: one node holds it."""
    within = gang.demand.within
    if site.domains and not narrow:
        floor = (within.level or 0) if within.required else 0
        yield from _sufficient_domains(fleet, site, gang, floor)
    if not within.required or narrow:
        yield None


def _sufficient_domains(fleet: Fleet, site: Site, gang: Prepared, floor: int) -> Iterable[tuple[int, int]]:
    """Domains with enough slots for every group by itself, deepest first, then the least left, then by name."""
    levels = site.levels
    columns = [2 * group.column for group in gang.groups]
    spare = fleet.near[levels.index][:, columns] - np.array([group.need for group in gang.groups])
    enough = ((spare >= 0).all(axis=1) & (levels.depth > floor)).nonzero()[0]
    left, depth = spare[enough].sum(axis=1), levels.depth[enough]
    for at in enough[np.lexsort((left, -depth))]:
        yield int(levels.depth[at]) - 1, int(levels.index[at])


def _one_node(fleet: Fleet, site: Site, gang: Prepared) -> bool:
    """Narrower than any domain."""
    if gang.demand.apart:
        return False
    return len(Picker(fleet, site).holding(gang.groups, gang.total)) > 0


def _place_within(
    fleet: Fleet, site: Site, gang: Prepared, domain: tuple[int, int] | None, costing: Costing | None
) -> list[Load] | None:
    """Over few switches of a domain that has several; None says nothing."""
    if not site.domains or gang.zones:
        return None
    first = gang.groups[by_worth(gang.groups)[0]]
    shares = topology_split.split(fleet, site, domain, first.column, first.need)
    if shares is None:
        return None
    picker = Picker(fleet, site, domain, costing)
    if gang.alike:
        return picker.over(first, shares)
    return picker.several(gang.groups, beside=not gang.apart, shares=shares)


def _place_quickly(picker: Picker, gang: Prepared) -> list[Load] | None:
    """A good way without search; None says nothing unless all pods ask alike."""
    if gang.alike:
        return picker.alike(gang.groups[0])
    if gang.zones:
        return None
    if not gang.apart and (placement := picker.together(gang.groups, gang.total)) is not None:
        return placement
    return picker.several(gang.groups, beside=not gang.apart)


def _place_mixed(fleet: Fleet, site: Site, gang: Prepared, domain: tuple[int, int] | None) -> list[Load] | None:
    buckets = [b for b in site.buckets if b.names and (domain is None or _is_inside(b, domain))]
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
    requests = tuple((*g.asked, *(0,) * (width - len(g.asked))) for g in gang.groups)
    problem = Problem(
        needs=tuple(g.need for g in gang.groups),
        asked=requests,
        bins=tuple(vector for _, vector in bins),
        apart=gang.apart,
        zoned=tuple(pairs for _, pairs in gang.zones),
    )
    uses = packing.pack(problem) if bins else None
    return None if uses is None else _as_loads([bucket for bucket, _ in bins], uses)


def _is_inside(bucket: Bucket, domain: tuple[int, int]) -> bool:
    return len(bucket.path) > domain[0] and bucket.path[domain[0]] == domain[1]


def _as_loads(buckets: list[Bucket], uses: list[Use]) -> list[Load]:
    taken: dict[int, int] = {}
    loads = []
    for use in uses:
        start = taken.get(use.bin, 0)
        names = tuple(buckets[use.bin].names[start : start + use.nodes])
        taken[use.bin] = start + use.nodes
        loads += [Load(shape, names, each) for shape, each in enumerate(use.pods) if each]
    return loads
