"""Which running gangs leave a waiting one a place on the nodes of one cluster, at a low price in sum. Pure.

A proposal: places are counted as pods of one shape, topology aside. Each step takes the node that has the next place at the
lowest price for a place, all that its gangs free on other nodes counted in. Who may go at all, and what prices mean, is not
known here.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.gang.types import AdmittedGang, Gang
from jobs.core.placement.nodes.fit import Prepared
from jobs.core.placement.nodes.node_states import MANY, Vector, minus

Freed = Mapping[str, Mapping[str, Vector]]
"""By key what would be free without it on each node of one cluster."""


class _Bundle(NamedTuple):
    """Those that go together for the next place on one node."""

    rate: float
    """Price of a place."""
    node: str
    keys: tuple[str, ...]


def propose(
    places: PlacementCache, gang: Gang, leaving: Mapping[str, AdmittedGang], prices: Mapping[str, float], now: datetime
) -> frozenset[str]:
    """Keys of ``leaving`` without which the gang may have a place; empty: none are known."""
    prepared = places.engine.prepared(gang.demand)
    request, pods = _typical_pod(prepared)
    by_cluster: dict[str, dict[str, AdmittedGang]] = defaultdict(dict)
    for key, each in leaving.items():
        by_cluster[each.cluster].setdefault(key, each)
    proposals = []
    for name in sorted(by_cluster.keys() & set(_clusters(places, gang, now))):
        freed = {key: _freed(places, each) for key, each in by_cluster[name].items()}
        keys = _Nodes(_free(places, name, prepared), freed, prices, request).cover(pods)
        if keys:
            proposals.append((sum(prices[key] for key in keys), name, keys))
    return min(proposals)[2] if proposals else frozenset()


def _typical_pod(prepared: Prepared) -> tuple[Vector, int]:
    """The most that any pod asks of each resource, of those with devices if there are any; and how many pods these are."""
    groups = [group for group in prepared.groups if group.devices] or list(prepared.groups)
    width = max((len(group.asked) for group in groups), default=0)
    padded = [(*group.asked, *(0,) * (width - len(group.asked))) for group in groups]
    return tuple(map(max, zip(*padded, strict=True))), sum(group.need for group in groups)


def _clusters(places: PlacementCache, gang: Gang, now: datetime) -> Iterable[str]:
    masks = places.engine.masks(gang)
    for name, site in places.engine.fleet.sites.items():
        until = gang.excluded.get(name)
        if any(mask[site.index] for mask in masks) and not (until and until > now):
            yield name


def _free(places: PlacementCache, cluster: str, prepared: Prepared) -> dict[str, Vector]:
    """What is free on each node that takes the pods."""
    states = places.engine.fleet.states
    asks = [group.shape.ask for group in prepared.groups if group.devices] or [g.shape.ask for g in prepared.groups]
    where = places.engine.fleet.sites[cluster].where
    kinds = {bucket.state.kind for bucket in where.values()}
    takes = {kind for kind in kinds if all(ask.refusal(states.classes[kind]) is None for ask in asks)}
    return {name: bucket.state.free for name, bucket in where.items() if bucket.state.kind in takes}


def _freed(places: PlacementCache, gang: AdmittedGang) -> dict[str, Vector]:
    """By node what the gang has there, bound or held."""
    vector, freed = places.engine.fleet.states.vector, dict[str, Vector]()
    for node, amounts in gang.pods:
        freed[node] = minus(freed.get(node, ()), vector(amounts), -1)
    for key in () if gang.fewer else gang.hold_keys:
        for amounts, names in places.holds[key].nodes if key in places.holds else ():
            for node in names:
                freed[node] = minus(freed.get(node, ()), vector(amounts), -1)
    return freed


class _Nodes:
    """The nodes of one cluster, with what leaves them."""

    def __init__(
        self, free: dict[str, Vector], freed: Freed, prices: Mapping[str, float], request: Sequence[int]
    ) -> None:
        self._free, self._prices = free, prices
        self._asked = [(i, amount) for i, amount in enumerate(request) if amount]
        self._freed = {key: {n: v for n, v in on.items() if n in free} for key, on in freed.items()}
        self._on: dict[str, set[str]] = defaultdict(set)
        for key, on in self._freed.items():
            for node in on:
                self._on[node].add(key)
        self._bundles: dict[str, _Bundle | None] = {}
        self._gone: set[str] = set()

    def cover(self, pods: int) -> frozenset[str]:
        """Those that go so that so many pods have a place; empty: there is no room for them."""
        room = sum(map(self._places, self._free.values()))
        stale = set(self._on)
        while room < pods:
            for node in sorted(stale):
                self._bundles[node] = self._bundle(node, pods - room)
            best = min(filter(None, self._bundles.values()), default=None)
            if best is None:
                return frozenset()
            touched = {node for key in best.keys for node in self._freed[key]}
            before = sum(self._places(self._free[node]) for node in touched)
            self._remove(best.keys)
            room += sum(self._places(self._free[node]) for node in touched) - before
            stale = touched | {node for each in touched for key in self._on[each] for node in self._freed[key]}
        return self._needed(room - pods)

    def _places(self, free: Vector) -> int:
        return max(min((free[i] // amount if i < len(free) else 0 for i, amount in self._asked), default=MANY), 0)

    def _bundle(self, node: str, needed: int) -> _Bundle | None:
        """Those that go for the next place there: the cheapest for what they free, and none that the others do without."""
        free, chosen = self._free[node], list[str]()
        before = self._places(free)
        for key in sorted(self._on[node], key=lambda key: (self._prices[key], key)):
            free = minus(free, self._freed[key][node], -1)
            chosen.append(key)
            if self._places(free) > before:
                break
        else:
            return None
        for key in chosen[::-1]:
            less = minus(free, self._freed[key][node], 1)
            if self._places(less) > before:
                free = less
                chosen.remove(key)
        price, gained = sum(self._prices[key] for key in chosen), self._gained(chosen)
        return _Bundle(price / min(max(gained, 1), needed), node, tuple(chosen))

    def _gained(self, keys: Sequence[str]) -> int:
        more: dict[str, Vector] = {}
        for key in keys:
            for node, amounts in self._freed[key].items():
                more[node] = minus(more.get(node, ()), amounts, -1)
        return sum(
            self._places(minus(self._free[node], amounts, -1)) - self._places(self._free[node])
            for node, amounts in more.items()
        )

    def _remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._gone.add(key)
            for node, amounts in self._freed[key].items():
                self._free[node] = minus(self._free[node], amounts, -1)
                self._on[node].discard(key)

    def _needed(self, spare: int) -> frozenset[str]:
        """Without those that the others suffice without, the dearest first."""
        for key in sorted(self._gone, key=lambda key: (-self._prices[key], key)):
            less = {node: minus(self._free[node], amounts, 1) for node, amounts in self._freed[key].items()}
            lost = sum(self._places(self._free[node]) - self._places(free) for node, free in less.items())
            if lost <= spare:
                spare -= lost
                self._gone.discard(key)
                self._free.update(less)
        return frozenset(self._gone)
