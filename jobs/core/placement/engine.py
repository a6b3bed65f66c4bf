"""The placement engine: holds the fleet, answers where a gang goes, and takes note of what was promised.

`find` asks, in this order: which clusters the filters leave, which of them hold the gang in their mode, which is best, and
which nodes. It changes nothing; `bind` and `release` do. One decision costs what clusters and node states cost, not nodes.
Equal fleets and equal gangs give equal plans, whatever happened before.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from jobs.core.gang.requirements import GangRequirements
from jobs.core.gang.types import CapacityHold, Gang
from jobs.core.placement import filters, scoring
from jobs.core.placement.nodes.capacity_index import GONE, Bucket, Fleet, Site
from jobs.core.placement.nodes.fit import Prepared, place_gang, prepare_demand
from jobs.core.placement.nodes.fragmentation_scorer import Expectation, Usual
from jobs.core.placement.nodes.node_selection import Load
from jobs.core.placement.nodes.node_states import Vector, minus, trimmed
from jobs.core.placement.nodes.packing import Unsure
from jobs.core.placement.scoring import ClusterTraits, Shares
from jobs.core.placement.types import Assignment, Member, Mode, NodeFacts
from jobs.core.policies.propagation import Affinity
from jobs.core.policies.weights import Weights

_KEPT = 2048
"""Prepared demands and filter masks kept; beyond it they are made anew."""

Mask = NDArray[np.bool_]
Held = tuple[str, tuple[str, ...], Vector, int]
"""(cluster, nodes, what one pod asks, pods a node)."""


class Engine:
    """Everything by name; a job is any hashable value that names it."""

    def __init__(self, weights: Weights | None = None) -> None:
        self.fleet = Fleet()
        self.members: dict[str, Member] = {}
        self.weights = weights or Weights()
        self._by_name: set[str] = set()
        self._held: dict[Hashable, list[Held]] = {}
        self._sums: dict[Hashable, tuple[str, Vector]] = {}
        self._owed: dict[tuple[str, str], Vector] = {}
        """By node, what is held there and in use by others: the holder will take it from the rest of the cluster."""
        self._waits: dict[Hashable, dict[tuple[str, str], Vector]] = {}
        """By node, what is held for a gang that waits until others leave the node: nothing is owed for that."""
        self._epoch = 0
        self._prepared: dict[GangRequirements, Prepared] = {}
        self._masks: dict[tuple[int, str, str, frozenset[str], frozenset[str] | None], tuple[object, list[Mask]]] = {}
        self._data: dict[frozenset[tuple[str, str]], Shares] = {}
        self._cheapness: dict[frozenset[str], Shares | None] = {}
        """By the GPU models asked for."""
        self._failures: Mapping[str, float] = {}
        self._traits: ClusterTraits | None = None
        self._usual: Usual = ()
        self._expected: Expectation | None = None

    def expect(self, usual: Usual) -> None:
        """What usually comes, to choose single nodes by; nothing: by what is left on them. Say it anew now and then."""
        self._usual, self._expected = tuple(usual), None

    # inputs

    def set_cluster(self, member: Member) -> None:
        self.members[member.name] = member
        self.fleet.site(member.name)
        self._masks.clear()
        self._data.clear()
        self._cheapness.clear()
        self._traits = None

    def set_failures(self, failures: Mapping[str, float]) -> None:
        """Recent failures by cluster, faded by time; clusters that are not named had none."""
        self._failures, self._traits = failures, None

    def drop_cluster(self, name: str) -> None:
        """The cluster with its nodes and everything held there."""
        self.members.pop(name, None)
        self.fleet.drop(name)
        self._held = {job: [h for h in held if h[0] != name] for job, held in self._held.items()}
        self._sums = {job: held for job, held in self._sums.items() if held[0] != name}
        self._owed = {key: owed for key, owed in self._owed.items() if key[0] != name}
        self._masks.clear()

    def set_node(self, cluster: str, node: NodeFacts) -> None:
        """Takes a node as its cluster reports it now. What is held there stays held."""
        self.fleet.tidy()
        vector = self.fleet.states.vector
        free = {name: amount - node.requested.get(name, 0) for name, amount in node.allocatable.items()}
        kind = node.kind(by_name=node.name in self._by_name, cluster=cluster)
        self.fleet.set_node(cluster, node.name, kind, vector(free), node.domain)
        self._owe(cluster, [node.name])

    def drop_node(self, cluster: str, name: str) -> None:
        self.fleet.drop_node(cluster, name)
        self._owe(cluster, [name])

    # holds

    def bind(self, job: Hashable, assignment: Assignment) -> None:
        """Holds the assignment for ``job``, in place of what it held."""
        self.release(job)
        self.fleet.tidy()
        if assignment.mode is Mode.AGGREGATE:
            self._promise(assignment.cluster, vector := self.fleet.states.vector(assignment.demand.total), 1)
            self._sums[job] = (assignment.cluster, vector)
            return
        held = []
        for parts, load in assignment.loads:
            request = self.fleet.states.vector(dict(assignment.demand.parts[parts[0]].ask.request))
            held.append((assignment.cluster, load.names, request, load.each))
        self._held[job] = held
        for entry in held:
            self._apply_hold(entry, 1)

    def hold(self, hold: CapacityHold) -> None:
        """Holds what was promised some time ago, in place of what its key held. Negative amounts: as if it were gone."""
        self.release(hold.key)
        self.fleet.tidy()
        vector = self.fleet.states.vector
        if not hold.nodes:
            self._sums[hold.key] = summed = (hold.cluster, vector(hold.total))
            self._promise(*summed, 1)
            return
        held = [(hold.cluster, tuple(sorted(names)), vector(dict(amounts)), 1) for amounts, names in hold.nodes]
        self._held[hold.key] = held
        if hold.waits:
            self._waits[hold.key] = {(place, name): request for place, names, request, _ in held for name in names}
        for entry in held:
            self._apply_hold(entry, 1)

    def release(self, job: Hashable) -> None:
        """Gives back what ``job`` holds; nothing if it holds nothing."""
        self._waits.pop(job, None)
        for entry in self._held.pop(job, ()):
            self._apply_hold(entry, -1)
        if (promised := self._sums.pop(job, None)) is not None:
            self._promise(*promised, -1)

    def _apply_hold(self, held: Held, sign: int) -> None:
        cluster, names, request, each = held
        site = self._site(cluster)
        by_bucket = _by_bucket(self.fleet, site, names)
        now = [self.fleet.take(site, bucket, node_names, request, sign * each) for bucket, node_names in by_bucket]
        if self._owed or any(min(bucket.state.free, default=0) < 0 for bucket in now):
            self._owe(cluster, names)

    def _owe(self, cluster: str, names: Iterable[str]) -> None:
        where = self.fleet.sites[cluster].where if cluster in self.fleet.sites else {}
        for name in names:
            if before := self._owed.pop((cluster, name), ()):
                self._promise(cluster, before, -1)
            bucket = where.get(name)
            if bucket is None or min(bucket.state.free, default=0) >= 0:
                continue
            held, free = self.fleet.held(cluster, name), bucket.state.free
            for waits in self._waits.values():
                debts = waits.get((cluster, name), ())
                held, free = minus(held, debts, 1), minus(free, debts, -1)
            owed = trimmed([min(h, -f) if f < 0 < h else 0 for h, f in zip(held, free, strict=False)])
            if owed:
                self._owed[cluster, name] = owed
                self._promise(cluster, owed, 1)

    def _promise(self, cluster: str, vector: Vector, sign: int) -> None:
        index = self._site(cluster).index
        self.fleet.fit_tables()
        self.fleet.promised[index, : len(vector)] += sign * np.array(vector, dtype=np.int64)

    def _site(self, cluster: str) -> Site:
        """A node that has not been reported yet counts as not ready."""
        if cluster not in self.members:
            self.set_cluster(Member(cluster, ready=False))
        return self.fleet.sites[cluster]

    # decisions

    def find(
        self, gang: Gang, demand: GangRequirements, now: datetime, weights: Weights | None = None
    ) -> Assignment | None:
        """The best place in the first affinity term that has one. None: `explaining.explain_clusters` says why."""
        prepared = self.prepared(demand)
        if not prepared.possible:
            return None
        holding = self.holding(prepared, gang.fit)
        for mask in self.masks(gang):
            allowed = mask & holding
            for name, until in gang.excluded.items():
                if until > now and name in self.fleet.sites:
                    allowed[self.fleet.sites[name].index] = False
            candidates = allowed.nonzero()[0]
            for index in self._ranked(prepared, candidates, weights or self.weights_of(gang)):
                assignment = self._place(index, prepared, gang.fit)
                if assignment is not None:
                    return assignment
        return None

    def prepared(self, demand: GangRequirements) -> Prepared:
        if demand not in self._prepared:
            self.fleet.make_room(len(demand.parts))
        if self._usual and (self._expected is None or self._expected.epoch != self.fleet.states.epoch):
            self._expected = Expectation(self.fleet, self._usual)
        if self._epoch != self.fleet.states.epoch or len(self._prepared) > _KEPT:
            self._epoch = self.fleet.states.epoch
            self._prepared.clear()
        prepared = self._prepared.get(demand)
        if prepared is None:
            self._name({name for part in demand.parts for name in part.ask.names} - self._by_name)
            prepared = self._prepared[demand] = prepare_demand(self.fleet, demand)
        return prepared

    def aggregates(self, cluster: str, fit: str) -> bool:
        """Whether the sum alone counts there, for gangs of this fit (empty: the cluster's own)."""
        return fit == Mode.AGGREGATE if fit else self.members[cluster].mode is Mode.AGGREGATE

    def holding(self, gang: Prepared, fit: str = "") -> Mask:
        """Clusters that have enough, by the counts: exact for pods that ask alike, necessary for others."""
        fleet, aggregate = self.fleet, self.traits.aggregate
        if fit:
            aggregate = np.full(len(fleet.slots), fit == Mode.AGGREGATE)
        mixed = fit == Mode.AGGREGATE if fit else self.traits.mixed
        enough = np.ones(len(fleet.slots), dtype=np.bool_)
        for group in gang.groups:
            need = np.where(aggregate, 1, group.need) if mixed else group.need
            enough &= fleet.slots[:, 2 * group.column] >= need
        if len(gang.groups) > 1 or mixed or self._sums or self._owed:
            width = len(gang.total)
            enough &= (fleet.room[:, :width] - fleet.promised[:, :width] >= gang.total).all(axis=1)
        return enough

    def masks(self, gang: Gang) -> list[Mask]:
        """Per affinity term, the clusters that no filter refuses."""
        key = (id(gang.policy), gang.api_version, gang.kind, gang.schedulers, gang.data_on)
        if key not in self._masks:
            if len(self._masks) > _KEPT:
                self._masks.clear()
            affinities = gang.policy.affinities if gang.policy else (Affinity(),)
            self._masks[key] = (gang.policy, [self._mask(gang, affinity) for affinity in affinities])
        return self._masks[key][1]

    def _mask(self, gang: Gang, affinity: Affinity) -> Mask:
        allowed = np.zeros(len(self.fleet.slots), dtype=np.bool_)
        for name, member in self.members.items():
            refused = filters.permanent_refusal(gang, member, affinity)
            allowed[self.fleet.sites[name].index] = refused is None
        return allowed

    def shares(self, gang: Prepared, candidates: NDArray[np.int64]) -> Mapping[str, scoring.Part]:
        """The score by part."""
        demand = gang.demand
        cheapness, data = self._cheapness_of(demand.models), self._data_shares(demand)
        return scoring.score_parts(self.fleet, gang, candidates, self.traits, cheapness=cheapness, data=data)

    def weights_of(self, gang: Gang) -> Weights:
        """Those its policy states; the engine's for the other parts of the score."""
        stated = gang.policy.score_weights if gang.policy else ()
        return replace(self.weights, **dict(stated)) if stated else self.weights

    @property
    def traits(self) -> ClusterTraits:
        if self._traits is None:
            self._traits = traits = ClusterTraits.empty(len(self.fleet.slots))
            for name, member in self.members.items():
                index = self.fleet.sites[name].index
                failures = self._failures.get(name, 0.0)
                traits.set(index, failures, aggregate=member.mode is Mode.AGGREGATE)
        return self._traits

    def _cheapness_of(self, models: frozenset[str]) -> Shares | None:
        if models not in self._cheapness:
            costs = np.zeros(len(self.fleet.slots))
            for name, member in self.members.items():
                costs[self.fleet.sites[name].index] = max(member.prices.price_of(model) for model in models or {""})
            self._cheapness[models] = scoring.cheapness_of(costs)
        return self._cheapness[models]

    def _data_shares(self, demand: GangRequirements) -> Shares | None:
        if not demand.data:
            return None
        if demand.data not in self._data:
            shares = self._data[demand.data] = np.zeros(len(self.fleet.slots))
            for name, member in self.members.items():
                shares[self.fleet.sites[name].index] = len(demand.data & set(member.labels.items())) / len(demand.data)
        return self._data[demand.data]

    def _ranked(self, gang: Prepared, candidates: NDArray[np.int64], weights: Weights) -> Iterator[int]:
        """Best first, equal ones by name."""
        if len(candidates) < 2:
            yield from candidates.tolist()
            return
        score = scoring.weighted_total(self.shares(gang, candidates), weights)
        for _ in range(len(candidates)):
            best = (score == score.max()).nonzero()[0]
            at = min(best, key=lambda i: self.name_of(int(candidates[i]))) if len(best) > 1 else best[0]
            yield int(candidates[at])
            score[at] = -np.inf

    def name_of(self, index: int) -> str:
        site = self.fleet.order[index]
        return site.name if site is not None else ""

    def _place(self, index: int, gang: Prepared, fit: str) -> Assignment | None:
        site = self.fleet.order[index]
        if site is None:
            return None
        if self.aggregates(site.name, fit):
            return Assignment(site.name, Mode.AGGREGATE, gang.demand)
        try:
            loads = place_gang(self.fleet, site, gang, self._expected)
        except Unsure:
            return None
        if loads is None:
            return None
        named = tuple((gang.groups[x.shape].parts, x) for x in loads)
        return Assignment(site.name, Mode.NODE_FIT, gang.demand, named, _where(site, loads))

    def _name(self, names: set[str]) -> None:
        """A gang asks for these nodes by name: from now on each is a class of its own."""
        self._by_name |= names
        for cluster, site in self.fleet.sites.items():
            for name in sorted(names & site.where.keys()):
                self.fleet.name_node(cluster, name)


def _where(site: Site, loads: list[Load]) -> dict[str, tuple[str, ...]]:
    if not site.domains:
        return {}
    paths = {name: site.where[name].path for load in loads for name in load.names}
    return {name: site.named[path] for name, path in paths.items() if path}


def _by_bucket(fleet: Fleet, site: Site, names: tuple[str, ...]) -> list[tuple[Bucket, list[str]]]:
    """The nodes by the bucket they are in now; one that has not been reported yet is added, and takes nothing new."""
    buckets: dict[int, tuple[Bucket, list[str]]] = {}
    for name in names:
        bucket = site.where.get(name)
        if bucket is None:
            fleet.set_node(site.name, name, GONE, ())
            bucket = site.where[name]
        buckets.setdefault(bucket.index, (bucket, []))[1].append(name)
    for _, together in buckets.values():
        together.sort()
    return list(buckets.values())
