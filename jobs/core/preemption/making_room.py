"""Which running gangs leave a waiting one a place on the nodes of one cluster, at a low price in sum. Pure.

A proposal: places are counted as pods of one shape, topology aside. Each step takes the node that has the next place at the
lowest price for a place, all that its gangs free on other nodes counted in. Who may go at all, and what prices mean, is not
known here.

How long that takes grows with the gangs on a node and the nodes of a gang. So all proposals of one plan share a number of
steps, after which nothing is proposed: a step looks at one gang on one node, or prices one node again.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import fsum
from operator import add, floordiv, sub
from typing import NamedTuple

from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.gang.types import AdmittedGang, Gang
from jobs.core.placement.nodes.fit import Prepared
from jobs.core.placement.nodes.node_states import MANY, Vector, minus

STEPS = 200_000
"""Of all proposals of one plan: some 0.3 s."""
Freed = Mapping[str, Mapping[str, Vector]]
"""By key what would be free without it on each node of one cluster."""


class Spent(Exception):
    """The steps are used up."""


class Steps:
    """What the proposals of one plan may still take."""

    def __init__(self, steps: int = STEPS) -> None:
        self._given = self._left = steps

    @property
    def untouched(self) -> bool:
        return self._left == self._given

    @property
    def spent(self) -> bool:
        return self._left < 0

    def take(self, steps: int) -> None:
        self._left -= steps
        if self.spent:
            raise Spent


class _Bundle(NamedTuple):
    """Those that go together for the next place on one node."""

    price: float
    node: str
    keys: tuple[str, ...]


def propose(
    places: PlacementCache,
    gang: Gang,
    leaving: Mapping[str, AdmittedGang],
    prices: Mapping[str, float],
    now: datetime,
    steps: Steps,
) -> frozenset[str]:
    """Keys of ``leaving`` without which the gang may have a place; empty: none are known, or the steps are used up."""
    prepared = places.engine.prepared(gang.demand)
    request, pods = _typical_pod(prepared)
    by_cluster: dict[str, dict[str, AdmittedGang]] = defaultdict(dict)
    for key, each in leaving.items():
        by_cluster[each.cluster].setdefault(key, each)
    proposals = []
    try:
        for name in sorted(by_cluster.keys() & set(_clusters(places, gang, now))):
            steps.take(sum(len(each.pods) + 1 for each in by_cluster[name].values()))
            freed = {key: _freed(places, each) for key, each in by_cluster[name].items()}
            keys = _Nodes(_free(places, name, prepared), freed, prices, request, steps).cover(pods)
            if keys:
                proposals.append((fsum(prices[key] for key in keys), name, keys))
    except Spent:
        pass
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
    """By node of its cluster what the gang has there, bound or held."""
    vector, freed = places.engine.fleet.states.vector, dict[str, Vector]()
    for node, amounts in gang.pods:
        freed[node] = minus(freed.get(node, ()), vector(amounts), -1)
    for key in () if gang.fewer else gang.hold_keys:
        hold = places.holds.get(key)
        for amounts, names in hold.nodes if hold is not None and hold.cluster == gang.cluster else ():
            for node in names:
                freed[node] = minus(freed.get(node, ()), vector(amounts), -1)
    return freed


class _Nodes:
    """The nodes of one cluster, with what leaves them. Of each resource that is asked for."""

    def __init__(
        self,
        free: Mapping[str, Vector],
        freed: Freed,
        prices: Mapping[str, float],
        request: Sequence[int],
        steps: Steps,
    ) -> None:
        self._prices, self._steps = prices, steps
        self._columns = [i for i, amount in enumerate(request) if amount]
        self._asked = self._of_asked(request)
        self._free = {node: self._of_asked(vector) for node, vector in free.items()}
        self._freed = {key: {n: self._of_asked(v) for n, v in on.items() if n in free} for key, on in freed.items()}
        self._room = {node: self._places(vector) for node, vector in self._free.items()}
        self._on: dict[str, set[str]] = defaultdict(set)
        for key, on in self._freed.items():
            for node in on:
                self._on[node].add(key)
        self._alone: dict[str, dict[str, int]] = {key: {} for key in self._freed}
        """By key and node how many places more there are without it alone."""
        self._all_alone = dict.fromkeys(self._freed, 0)
        self._bundles: dict[str, _Bundle] = {}
        self._gained: dict[str, int] = {}
        """By node how many places more there are, in the cluster, without those of its bundle; where it is known."""
        self._gone: set[str] = set()

    def cover(self, pods: int) -> frozenset[str]:
        """Those that go so that so many pods have a place; empty: there is no room for them."""
        room = sum(self._room.values())
        self._look_at(self._on)
        while room < pods:
            best = self._cheapest(pods - room)
            if best is None:
                return frozenset()
            touched = self._remove(best.keys)
            room += sum(self._places(self._free[node]) - self._room[node] for node in touched)
            self._look_at(touched)
        return self._needed(room - pods)

    def _of_asked(self, vector: Sequence[int]) -> Vector:
        width = len(vector)
        return tuple([vector[i] if i < width else 0 for i in self._columns])

    def _places(self, free: Vector) -> int:
        return max(min(map(floordiv, free, self._asked), default=MANY), 0)

    def _look_at(self, touched: Iterable[str]) -> None:
        """Learn again what may leave these nodes, whose free amounts are others now."""
        changed = set[str]()
        for node in touched:
            free, keys, room = self._free[node], self._on[node], self._places(self._free[node])
            self._steps.take(2 * len(keys) + 1)
            self._room[node] = room
            for key in keys:
                alone, gain = self._alone[key], self._places(_plus(free, self._freed[key][node])) - room
                self._all_alone[key] += gain - alone.get(node, 0)
                alone[node] = gain
            changed |= keys
            if (bundle := self._bundle(node)) is None:
                self._bundles.pop(node, None)
            else:
                self._bundles[node] = bundle
            self._gained.pop(node, None)
        for node in set[str]().union(*(self._freed[key] for key in changed)):
            self._gained.pop(node, None)

    def _cheapest(self, needed: int) -> _Bundle | None:
        """Of the lowest price for each place that is needed; no bundle has a lower one than if it made all these places."""
        best: tuple[float, str, _Bundle] | None = None
        for bundle in sorted(self._bundles.values()):
            if best is not None and bundle.price / needed > best[0]:
                break
            if bundle.node not in self._gained:
                self._gained[bundle.node] = self._gain(bundle.keys)
            rate = bundle.price / min(max(self._gained[bundle.node], 1), needed)
            best = min(best or (rate, bundle.node, bundle), (rate, bundle.node, bundle))
        return best and best[2]

    def _bundle(self, node: str) -> _Bundle | None:
        """Those that go for the next place there: the cheapest for what they free, and none that the others do without."""
        free, before, chosen = self._free[node], self._room[node], list[str]()
        for key in sorted(self._on[node], key=lambda key: (self._prices[key], key)):
            free = _plus(free, self._freed[key][node])
            chosen.append(key)
            if self._places(free) > before:
                break
        else:
            return None
        for key in chosen[::-1]:
            less = _less(free, self._freed[key][node])
            if self._places(less) > before:
                free = less
                chosen.remove(key)
        return _Bundle(fsum(self._prices[key] for key in chosen), node, tuple(chosen))

    def _gain(self, keys: Sequence[str]) -> int:
        """How many places more there are without these: what each makes alone, but for nodes that several of them are on."""
        seen, shared = set[str](), set[str]()
        for key in keys:
            shared |= seen & self._freed[key].keys()
            seen |= self._freed[key].keys()
        self._steps.take(len(keys) * (1 + len(shared)) + len(seen) // 16)
        gain = sum(self._all_alone[key] for key in keys)
        for node in shared:
            there = [key for key in keys if node in self._freed[key]]
            free = self._free[node]
            for key in there:
                free = _plus(free, self._freed[key][node])
            gain += self._places(free) - self._room[node] - sum(self._alone[key][node] for key in there)
        return gain

    def _remove(self, keys: Sequence[str]) -> set[str]:
        """Returns the nodes that they were on."""
        for key in keys:
            self._gone.add(key)
            for node, amounts in self._freed[key].items():
                self._free[node] = _plus(self._free[node], amounts)
                self._on[node].discard(key)
        return {node for key in keys for node in self._freed[key]}

    def _needed(self, spare: int) -> frozenset[str]:
        """Without those that the others suffice without, the dearest first."""
        for key in sorted(self._gone, key=lambda key: (-self._prices[key], key)):
            less = {node: _less(self._free[node], amounts) for node, amounts in self._freed[key].items()}
            lost = sum(self._places(self._free[node]) - self._places(free) for node, free in less.items())
            if lost <= spare:
                spare -= lost
                self._gone.discard(key)
                self._free.update(less)
        return frozenset(self._gone)


def _plus(free: Vector, amounts: Vector) -> Vector:
    return tuple(map(add, free, amounts))


def _less(free: Vector, amounts: Vector) -> Vector:
    return tuple(map(sub, free, amounts))
