"""Plans the reservation for a big gang: on which cluster, which nodes, and when it is expected to start there.

Planned again in every cycle from facts alone (waiting gangs, running gangs, run times of former ones), so that another
process, or this one after a restart, plans the same. Only clusters that are fitted node by node are used.
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
from jobs.core.gang.requirements import GangRequirements, NodeClass
from jobs.core.gang.types import CapacityHold, Gang
from jobs.core.placement.engine import Engine
from jobs.core.placement.nodes.capacity_index import Site
from jobs.core.placement.nodes.fit import Prepared
from jobs.core.placement.nodes.node_selection import Group
from jobs.core.placement.nodes.node_states import Vector, minus
from jobs.core.placement.types import Mode
from jobs.core.reasons import Amounts
from jobs.core.settings import CycleSettings
from quotas.core.accounts.queue_use import Account
from quotas.core.queues import admission, recent_use
from quotas.core.queues.recent_use import HALF_LIFE, RecentUse

LOOKED_AT = 50_000
"""Nodes examined per second of fleet time: in a fleet of N nodes a reservation is planned again after N / LOOKED_AT seconds."""
Slots = tuple[int, ...]
"""How many pods of each group fit."""


@dataclass(frozen=True, slots=True)
class Run:
    """A placed job, as the forecast of free nodes needs it."""

    owner: Hashable
    devices: int
    since: float | None
    """When it started; None: it has not yet."""
    runtime_s: float | None
    """Declared; None: to be estimated."""
    hold_key: Hashable
    """Key of its open capacity hold."""
    cluster: str = ""
    pods: tuple[tuple[str, Amounts], ...] = ()
    """(node, one pod's request) of those that are bound."""
    leaf: str = ""
    """The quota leaf whose use it is; empty: none's."""
    user: str = ""


@dataclass(slots=True)
class Runs:
    """Running jobs, how long former ones ran, and what each quota leaf has used lately."""

    by_job: dict[int, Run] = field(default_factory=dict)
    estimates: RuntimeEstimates = field(default_factory=RuntimeEstimates)
    used: RecentUse[str] = field(default_factory=RecentUse[str])
    shares: RecentUse[Account] = field(default_factory=RecentUse[Account])
    """Use of ended attempts over the half-life of shares; empty where the tree does not share by use over time."""
    open_attempts: dict[tuple[int, int], tuple[Account, int, float]] = field(default_factory=dict)
    """Of attempts that go on, by job and number: account, GPUs, and since when."""
    counts_use: bool = False
    """Whether `shares` and `open_attempts` are kept."""
    share_half_life: float = HALF_LIFE

    def runtime_of(self, gang: Gang) -> float:
        """Declared or estimated run time of a waiting gang, in seconds."""
        if gang.runtime_s is not None:
            return gang.runtime_s
        return self.estimates.estimate_runtime(owner_of(gang), gang.devices)

    def expected_ends(self, now: float) -> Mapping[Hashable, tuple[Run, float]]:
        """Each running job with its expected end, by the key of its hold."""
        ends: dict[Hashable, tuple[Run, float]] = {}
        for run in self.by_job.values():
            runtime_s = run.runtime_s
            if runtime_s is None:
                runtime_s = self.estimates.estimate_runtime(run.owner, run.devices)
            started = now if run.since is None else run.since
            ends[run.hold_key] = (run, backfill_policy.expected_end(started, runtime_s, now))
        return ends

    def use_by_user(self, now: float) -> dict[Account, float]:
        """GPU-seconds by leaf and user, as they count now over the half-life of shares, and until running jobs should end."""
        use = self.shares.at(now)
        for account, gpus, since in self.open_attempts.values():
            seconds = recent_use.faded(gpus, min(since, now), now, now, self.share_half_life)
            use[account] = use.get(account, 0.0) + seconds
        for run, end in self.expected_ends(now).values():
            account = (run.leaf, run.user)
            use[account] = use.get(account, 0.0) + run.devices * (end - now)
        return use

    def use(self, now: float) -> dict[str, float]:
        """GPU-seconds by leaf, of what ended as they count now, and of what runs until it is expected to end."""
        use = self.used.at(now)
        for run, end in self.expected_ends(now).values():
            since = now if run.since is None else min(run.since, now)
            seconds = recent_use.faded(run.devices, since, now, now) + run.devices * (end - now)
            use[run.leaf] = use.get(run.leaf, 0.0) + seconds
        return use


def no_runs() -> Runs:
    return Runs()


def owner_of(gang: Gang) -> Hashable:
    """The namespace: run times of its former jobs estimate this one's."""
    return gang.name.partition("/")[0]


def may_backfill(reservation: Reservation, gang: Gang, runs: Runs, now: float, trust_s: float) -> bool:
    """Whether the gang may use the reserved nodes: it is first by priority where that decides, or ends in time.

    Only a declared run time counts once the reserved gang has waited for ``trust_s`` seconds.
    """
    one_order = gang.leaf == reservation.gang.leaf or not (gang.asks_quota and reservation.gang.asks_quota)
    if one_order and gang.priority > reservation.gang.priority:
        return True
    trusted = gang.runtime_s is not None or now - reservation.gang.queued_at.timestamp() < trust_s
    return trusted and reservation.reserved.may_backfill(runs.runtime_of(gang), now)


def may_use(reservation: Reservation, gang: Gang, runs: Runs, now: float, quota: Quota | None, trust_s: float) -> bool:
    """Whether the gang may use the reserved nodes: its quota comes before the big gang's, or it may backfill."""
    return is_promised_before(reservation, gang, quota) or may_backfill(reservation, gang, runs, now, trust_s)


def is_promised_before(reservation: Reservation, gang: Gang, quota: Quota | None) -> bool:
    """Whether the gang is within a min of what the big gang would only borrow."""
    promised = _under_one_quota(reservation, gang, quota)
    return promised is not None and admission.comes_before(promised.ledger, gang.charge, reservation.gang.charge)


def might_use(
    reservation: Reservation, gang: Gang, runs: Runs, now: float, quota: Quota | None, trust_s: float
) -> bool:
    """Whether the gang may use the reserved nodes now, or may once placements of this run have made the big gang a borrower."""
    promised = _under_one_quota(reservation, gang, quota)
    before = promised is not None and admission.is_within_beside(promised.ledger, gang.charge, reservation.gang.charge)
    return before or may_backfill(reservation, gang, runs, now, trust_s)


def _under_one_quota(reservation: Reservation, gang: Gang, quota: Quota | None) -> Quota | None:
    return quota if gang.asks_quota and reservation.gang.asks_quota else None


def bigness_test(engine: Engine, big: int) -> tuple[Hashable, Callable[[GangRequirements], bool]]:
    """A test for demands that need many whole nodes, and a token that changes when the test's answers may."""
    largest = max((len(site.base) for site in engine.fleet.sites.values()), default=0)
    token = (largest, len(engine.fleet.states.classes))
    return token, lambda demand: backfill_policy.is_big(_whole_nodes(engine, demand), largest, big)


def _whole_nodes(engine: Engine, demand: GangRequirements) -> float:
    """How many empty nodes the demand takes, of the classes that hold most of it; 0: no class can hold a pod."""
    taken = 0.0
    for group in engine.prepared(demand).groups:
        most = max((_pods_per_node(group, kind, None) for kind in engine.fleet.states.classes), default=0)
        if not most:
            return 0.0
        taken += group.need / most
    return taken


def _pods_per_node(group: Group, kind: NodeClass, free: Vector | None) -> int:
    """How many pods of the group fit on a node of this class with ``free`` amounts; None: on an empty one."""
    if group.shape.ask.refusal(kind) is not None:
        return 0
    if free is None:
        offered = dict(kind.allocatable)
        fits = min((offered.get(r, 0) // request for r, request in group.shape.ask.request), default=group.need)
    else:
        pairs = ((free[i] if i < len(free) else 0, request) for i, request in enumerate(group.asked) if request)
        fits = min((have // request for have, request in pairs), default=group.need)
    return max(min(fits, 1) if group.shape.lone else fits, 0)


def plan_reservation(
    places: PlacementCache, gang: Gang, only: tuple[str, ...], runs: Runs, now: datetime, settings: CycleSettings
) -> Reservation | None:
    """The reservation for ``gang``: on the cluster where enough whole nodes are free first, the nodes that are free first."""
    reservation, nodes = places.reservation, sum(len(site.base) for site in places.engine.fleet.sites.values())
    age = now - reservation.planned_at if reservation and reservation.gang == gang else None
    if age is not None and timedelta() <= age < timedelta(seconds=nodes / LOOKED_AT):
        return reservation
    planned = _Planner(places, runs, now.timestamp()).plan_best(gang, only, now)
    linger = timedelta(seconds=settings.reservation_linger_s)
    return reservation if planned is None and age is not None and timedelta() <= age < linger else planned


class _Planner:
    def __init__(self, places: PlacementCache, runs: Runs, now: float) -> None:
        self.places, self.engine, self.now = places, places.engine, now
        self.free_at: dict[str, dict[str, float]] = defaultdict(dict)
        """Per cluster and node, when all jobs on it are expected to have ended."""
        self.ending: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        """Per cluster and node, the requests of pods whose jobs will have ended."""
        ends = runs.expected_ends(now)
        for run, end in ends.values():
            for node, request in run.pods:
                self.ending[run.cluster][node].update(request)
                self._occupy(run.cluster, (node,), end)
        for key, hold in places.holds.items():
            end = ends[key][1] if key in ends else now + runs.estimates.unknown_s
            for _, names in hold.nodes:
                self._occupy(hold.cluster, names, end)

    def _occupy(self, cluster: str, names: Iterable[str], end: float) -> None:
        nodes = self.free_at[cluster]
        for name in names:
            nodes[name] = max(nodes.get(name, self.now), end)

    def _to_be_freed(self, cluster: str, name: str) -> Amounts:
        """What ending jobs still request of a node; at most what the node reports, which may be updated before its pods are."""
        ending, facts = self.ending.get(cluster, {}).get(name), self.places.node_facts(cluster, name)
        if not ending or facts is None:
            return {}
        return {resource: min(amount, facts.requested.get(resource, 0)) for resource, amount in ending.items()}

    def plan_best(self, gang: Gang, only: tuple[str, ...], now: datetime) -> Reservation | None:
        prepared = self.engine.prepared(gang.demand)
        if not prepared.possible:
            return None
        best: ReservedNodes | None = None
        for cluster in self._allowed_clusters(gang, prepared, only, now):
            candidate = self._plan_on(cluster, gang, prepared)
            if candidate is not None and (best is None or candidate.starts < best.starts):
                best = candidate
        return self._as_reservation(gang, best, now) if best else None

    def _allowed_clusters(self, gang: Gang, prepared: Prepared, only: tuple[str, ...], now: datetime) -> list[str]:
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

    def _plan_on(self, cluster: str, gang: Gang, prepared: Prepared) -> ReservedNodes | None:
        """The nodes of one cluster that are free first: as few as hold the gang."""
        site = self.engine.fleet.sites[cluster]
        entries = self._entries(site, prepared)
        many = _least_entries(entries, prepared)
        while many:
            names = [name for _, name, _, _ in entries[:many]]
            taken = self._fit(cluster, gang, names)
            if taken:
                free_at = self.free_at[cluster]
                starts = max(free_at.get(name, self.now) for name in taken)
                return ReservedNodes(gang.job_id, cluster, tuple(name for name in names if name in taken), starts)
            many = min(2 * many, len(entries)) if many < len(entries) else 0
        return None

    def _entries(self, site: Site, prepared: Prepared) -> list[tuple[float, str, Vector, Slots]]:
        """(free at, name, free amounts, pods of each group that fit then) of each node that can take a pod; earliest first."""
        classes, vector = self.engine.fleet.states.classes, self.engine.fleet.states.vector
        free_at = self.free_at.get(site.name, {})
        known: dict[tuple[int, Vector], Slots] = {}
        entries = []
        for name, base in site.base.items():
            freed = self._to_be_freed(site.name, name)
            whole = minus(base, vector(freed), -1) if freed else base
            kind = site.where[name].state.kind
            if (kind, whole) not in known:
                known[kind, whole] = tuple(_pods_per_node(group, classes[kind], whole) for group in prepared.groups)
            if any(known[kind, whole]):
                entries.append((free_at.get(name, self.now), name, whole, known[kind, whole]))
        return sorted(entries, key=lambda entry: entry[:2])

    def _fit(self, cluster: str, gang: Gang, names: Sequence[str]) -> set[str]:
        """The nodes among ``names`` that the gang takes when all of them are free; empty when they do not hold it."""
        trial = Engine(self.engine.weights)
        trial.set_cluster(self.engine.members[cluster])
        for name in names:
            facts = self.places.node_facts(cluster, name)
            if facts is not None:
                remaining = Counter(facts.requested)
                remaining.subtract(self._to_be_freed(cluster, name))
                trial.set_node(cluster, replace(facts, requested=dict(remaining)))
        assignment = trial.find(replace(gang, excluded={}), gang.demand, datetime.fromtimestamp(self.now, UTC))
        return {name for _, load in assignment.loads for name in load.names} if assignment else set()

    def _as_reservation(self, gang: Gang, reserved: ReservedNodes, now: datetime) -> Reservation:
        """Hold each node completely: a gang placed beside this one might stand in its way."""
        alike: dict[tuple[tuple[str, int], ...], list[str]] = defaultdict(list)
        for name in reserved.nodes:
            facts = self.places.node_facts(reserved.cluster, name)
            alike[tuple(sorted(facts.allocatable.items())) if facts else ()].append(name)
        nodes = tuple((dict(amounts), tuple(names)) for amounts, names in alike.items())
        hold = CapacityHold(("kept", gang.job_id), reserved.cluster, {}, nodes, waits=True)
        return Reservation(gang, reserved, hold, now)


def _least_entries(entries: Sequence[tuple[float, str, Vector, Slots]], prepared: Prepared) -> int:
    """The least number of first entries that may hold the gang by counts and sums; 0 when all of them are not enough."""
    need = [group.need for group in prepared.groups]
    total = prepared.total.tolist()
    slots, room = [0] * len(need), [0] * len(total)
    for many, (_, _, whole, fits) in enumerate(entries, start=1):
        slots = list(map(add, slots, fits))
        room = [have + (whole[i] if i < len(whole) else 0) for i, have in enumerate(room)]
        if all(map(int.__ge__, slots, need)) and all(map(int.__ge__, room, total)):
            return many
    return 0
