"""For which gang nodes are kept, on which cluster, and from when on it is expected to have them.

Planned anew with every cycle from the facts alone (who waits, who runs, how long runs like theirs took), so that another
process, or this one started again, plans the same. Only clusters that are fitted node by node are drained.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from operator import add

import numpy as np

from jobs.core.admission import backfill_policy
from jobs.core.admission.backfill_policy import ReservedNodes, RuntimeEstimates
from jobs.core.admission.placement_cache import PlacementCache, Reservation
from jobs.core.admission.snapshot import Quota
from jobs.core.gang.requirements import Demand, NodeClass
from jobs.core.gang.types import Gang, Promise
from jobs.core.placement.capacity_index import Site
from jobs.core.placement.engine import Engine
from jobs.core.placement.fit import Prepared
from jobs.core.placement.node_selection import Group
from jobs.core.placement.node_states import Vector, minus
from jobs.core.placement.types import Mode
from jobs.core.reasons import Amounts
from jobs.core.settings import CycleSettings
from quotas.core import admission

LOOKED_AT = 50_000
"""Nodes looked at a second: in a fleet with more of them what is kept stays so for longer, before it is planned anew."""
Slots = tuple[int, ...]
"""How many pods of each group fit."""


@dataclass(frozen=True, slots=True)
class Run:
    """A job that has a place."""

    owner: Hashable
    devices: int
    since: float | None
    """When it started; None: it has not yet."""
    lasts: float | None
    """Declared; None: to be guessed."""
    promise: Hashable
    """The key of what is held for it still."""
    cluster: str = ""
    pods: tuple[tuple[str, Amounts], ...] = ()
    """(node, one pod's request) of those that are bound."""


@dataclass(slots=True)
class Runs:
    """Who runs, and how long runs take."""

    by_job: dict[int, Run] = field(default_factory=dict)
    estimates: RuntimeEstimates = field(default_factory=RuntimeEstimates)

    def lasts(self, gang: Gang) -> float:
        """How long a gang that waits will run."""
        return self.estimates.of(owner(gang), gang.devices) if gang.lasts is None else gang.lasts

    def ends(self, now: float) -> Mapping[Hashable, tuple[Run, float]]:
        """By what is promised to each, when it is expected to be gone."""
        found: dict[Hashable, tuple[Run, float]] = {}
        for run in self.by_job.values():
            lasts = self.estimates.of(run.owner, run.devices) if run.lasts is None else run.lasts
            found[run.promise] = (run, backfill_policy.ends(now if run.since is None else run.since, lasts, now))
        return found


def no_runs() -> Runs:
    return Runs()


def owner(gang: Gang) -> Hashable:
    """Whose former runs tell how long this one takes."""
    return gang.name.partition("/")[0]


def lets(kept: Reservation, gang: Gang, runs: Runs, now: float, trust_s: float) -> bool:
    """Whether it may use the nodes that are reserved for another: it comes first anyway, or is gone in time.

    Only a declared run time counts once the other has waited for ``trust_s`` seconds.
    """
    if gang.priority > kept.gang.priority:
        return True
    trusted = gang.lasts is not None or now - kept.gang.queued_at.timestamp() < trust_s
    return trusted and kept.drain.lets(runs.lasts(gang), now)


def may_use(kept: Reservation, gang: Gang, runs: Runs, now: float, quota: Quota | None, trust_s: float) -> bool:
    """Whether it may use the nodes: it was promised what the big gang would only borrow, or `lets` it."""
    return is_promised_before(kept, gang, quota) or lets(kept, gang, runs, now, trust_s)


def is_promised_before(kept: Reservation, gang: Gang, quota: Quota | None) -> bool:
    """Whether it was promised what the big gang would only borrow."""
    promised = _under_one_quota(kept, gang, quota)
    return promised is not None and admission.comes_before(promised.ledger, gang.charge, kept.gang.charge)


def might_use(kept: Reservation, gang: Gang, runs: Runs, now: float, quota: Quota | None, trust_s: float) -> bool:
    """Whether it may use the nodes now, or once others that are placed before the big gang have made that one a borrower."""
    promised = _under_one_quota(kept, gang, quota)
    before = promised is not None and admission.is_within_beside(promised.ledger, gang.charge, kept.gang.charge)
    return before or lets(kept, gang, runs, now, trust_s)


def _under_one_quota(kept: Reservation, gang: Gang, quota: Quota | None) -> Quota | None:
    return quota if gang.asks_quota and kept.gang.asks_quota else None


def bigness(engine: Engine, big: int) -> tuple[Hashable, Callable[[Demand], bool]]:
    """Whether a demand needs so many whole nodes that it would not find them by itself; true as long as the first stays."""
    largest = max((len(site.base) for site in engine.fleet.sites.values()), default=0)
    stays = (largest, len(engine.fleet.states.classes))
    return stays, lambda demand: backfill_policy.is_big(_whole_nodes(engine, demand), largest, big)


def _whole_nodes(engine: Engine, demand: Demand) -> float:
    """How many empty nodes it takes of those that hold most of it; 0: none could."""
    taken = 0.0
    for group in engine.prepared(demand).groups:
        most = max((_slots(group, kind, None) for kind in engine.fleet.states.classes), default=0)
        if not most:
            return 0.0
        taken += group.need / most
    return taken


def _slots(group: Group, kind: NodeClass, free: Vector | None) -> int:
    """How many of its pods a node with so much free holds; with everything free, if not said."""
    if group.shape.ask.refusal(kind) is not None:
        return 0
    if free is None:
        offered = dict(kind.allocatable)
        fits = min((offered.get(r, 0) // asked for r, asked in group.shape.ask.request), default=group.need)
    else:
        pairs = ((free[i] if i < len(free) else 0, asked) for i, asked in enumerate(group.asked) if asked)
        fits = min((have // asked for have, asked in pairs), default=group.need)
    return max(min(fits, 1) if group.shape.lone else fits, 0)


def plan(
    places: PlacementCache, gang: Gang, only: tuple[str, ...], runs: Runs, now: datetime, settings: CycleSettings
) -> Reservation | None:
    """What is to be kept for it: the nodes that are whole first, of the cluster where enough of them are."""
    kept, nodes = places.kept, sum(len(site.base) for site in places.engine.fleet.sites.values())
    age = now - kept.planned if kept and kept.gang == gang else None
    if age is not None and timedelta() <= age < timedelta(seconds=nodes / LOOKED_AT):
        return kept
    found, linger = (
        _Plan(places, runs, now.timestamp()).best(gang, only, now),
        timedelta(seconds=settings.reservation_linger_s),
    )
    return kept if found is None and age is not None and timedelta() <= age < linger else found


class _Plan:
    def __init__(self, places: PlacementCache, runs: Runs, now: float) -> None:
        self.places, self.engine, self.now = places, places.engine, now
        self.until: dict[str, dict[str, float]] = defaultdict(dict)
        """Per cluster and node, when everybody who is on it is expected to be gone."""
        self.leave: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        """Per cluster and node, what is in use by those who will be gone."""
        ends = runs.ends(now)
        for run, end in ends.values():
            for node, request in run.pods:
                self.leave[run.cluster][node].update(request)
                self._stays(run.cluster, (node,), end)
        for key, promise in places.promises.items():
            end = ends[key][1] if key in ends else now + runs.estimates.unknown_s
            for _, names in promise.nodes:
                self._stays(promise.cluster, names, end)

    def _stays(self, cluster: str, names: Iterable[str], end: float) -> None:
        nodes = self.until[cluster]
        for name in names:
            nodes[name] = max(nodes.get(name, self.now), end)

    def _leaves(self, cluster: str, name: str) -> Amounts:
        """What those who will be gone still use of a node: its own news may come before theirs."""
        leave, facts = self.leave.get(cluster, {}).get(name), self.places.node(cluster, name)
        if not leave or facts is None:
            return {}
        return {each: min(amount, facts.requested.get(each, 0)) for each, amount in leave.items()}

    def best(self, gang: Gang, only: tuple[str, ...], now: datetime) -> Reservation | None:
        prepared = self.engine.prepared(gang.demand)
        if not prepared.possible:
            return None
        found: ReservedNodes | None = None
        for cluster in self._allowed(gang, prepared, only, now):
            there = self.first(cluster, gang, prepared)
            if there is not None and (found is None or there.starts < found.starts):
                found = there
        return self._kept(gang, found, now) if found else None

    def _allowed(self, gang: Gang, prepared: Prepared, only: tuple[str, ...], now: datetime) -> list[str]:
        """Clusters that no filter refuses and that would hold it in sum if they were empty."""
        engine = self.engine
        allowed = np.any(engine.masks(gang), axis=0)
        allowed &= (engine.fleet.capacity[:, : len(prepared.total)] >= prepared.total).all(axis=1)
        away = {name for name, until in gang.excluded.items() if until > now}
        return [
            name
            for name, member in sorted(engine.members.items())
            if allowed[engine.fleet.sites[name].index] and member.mode is not Mode.AGGREGATE
            if name not in away and (not only or name in only)
        ]

    def first(self, cluster: str, gang: Gang, prepared: Prepared) -> ReservedNodes | None:
        """Its nodes that are whole first: as few as hold the gang."""
        site = self.engine.fleet.sites[cluster]
        entries = self._entries(site, prepared)
        many = _enough(entries, prepared)
        while many:
            names = [name for _, name, _, _ in entries[:many]]
            taken = self._fitted(cluster, gang, names)
            if taken:
                until = self.until[cluster]
                starts = max(until.get(name, self.now) for name in taken)
                return ReservedNodes(gang.job_id, cluster, tuple(name for name in names if name in taken), starts)
            many = min(2 * many, len(entries)) if many < len(entries) else 0
        return None

    def _entries(self, site: Site, prepared: Prepared) -> list[tuple[float, str, Vector, Slots]]:
        """Of the nodes that may take some of it, when they are whole, their names and what they hold then."""
        classes, vector = self.engine.fleet.states.classes, self.engine.fleet.states.vector
        until = self.until.get(site.name, {})
        known: dict[tuple[int, Vector], Slots] = {}
        found = []
        for name, base in site.base.items():
            leaves = self._leaves(site.name, name)
            whole = minus(base, vector(leaves), -1) if leaves else base
            kind = site.where[name].state.kind
            if (kind, whole) not in known:
                known[kind, whole] = tuple(_slots(group, classes[kind], whole) for group in prepared.groups)
            if any(known[kind, whole]):
                found.append((until.get(name, self.now), name, whole, known[kind, whole]))
        return sorted(found, key=lambda entry: entry[:2])

    def _fitted(self, cluster: str, gang: Gang, names: Sequence[str]) -> set[str]:
        """Those of the nodes that the gang takes when all of them are whole; empty: they do not hold it."""
        trial = Engine(self.engine.weights)
        trial.set_cluster(self.engine.members[cluster])
        for name in names:
            facts = self.places.node(cluster, name)
            if facts is not None:
                left = Counter(facts.requested)
                left.subtract(self._leaves(cluster, name))
                trial.set_node(cluster, replace(facts, requested=dict(left)))
        found = trial.find(replace(gang, excluded={}), gang.demand, datetime.fromtimestamp(self.now, UTC))
        return {name for _, load in found.loads for name in load.names} if found else set()

    def _kept(self, gang: Gang, found: ReservedNodes, now: datetime) -> Reservation:
        """All of each node: whatever is left beside the gang might be in its way."""
        alike: dict[tuple[tuple[str, int], ...], list[str]] = defaultdict(list)
        for name in found.nodes:
            facts = self.places.node(found.cluster, name)
            alike[tuple(sorted(facts.allocatable.items())) if facts else ()].append(name)
        nodes = tuple((dict(amounts), tuple(names)) for amounts, names in alike.items())
        return Reservation(gang, found, Promise(("kept", gang.job_id), found.cluster, {}, nodes, waits=True), now)


def _enough(entries: Sequence[tuple[float, str, Vector, Slots]], prepared: Prepared) -> int:
    """How many of the first nodes it takes by the counts at least; 0: all of them are not enough."""
    need = [group.need for group in prepared.groups]
    total = prepared.total.tolist()
    slots, room = [0] * len(need), [0] * len(total)
    for many, (_, _, whole, fits) in enumerate(entries, start=1):
        slots = list(map(add, slots, fits))
        room = [have + (whole[i] if i < len(whole) else 0) for i, have in enumerate(room)]
        if all(map(int.__ge__, slots, need)) and all(map(int.__ge__, room, total)):
            return many
    return 0
