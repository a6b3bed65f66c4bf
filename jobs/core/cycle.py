"""The scheduling cycle: who is next, may it, where does it go, write it down, the next one sees it.

Pure: the world and the time come in, a plan goes out; the same world gives the same plan. It knows neither the
database nor members. Quota and placement are decided together: a gang that the quota would have but no cluster holds is
not charged, and one that waits for its quota is told what the clusters say as well.
"""

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime

from jobs.core import gate, placement, reasons
from jobs.core.gate import Gate
from jobs.core.placement import Spot
from jobs.core.promises import Promises
from jobs.core.reasons import Code, QuotaVerdict, Reason, Verdict
from jobs.core.world import Gang, World
from quotas.core.admission import Bound, Refused
from quotas.core.admission import Code as Quota
from quotas.core.turns import Behind

ALIKE = 20
"""How many of one shape and queue may have a place taken back for them in one cycle; the next ones come in the next."""


@dataclass(frozen=True, slots=True)
class Placed:
    gang: Gang
    spot: Spot

    @property
    def result(self) -> str:
        """As the seed prints it: ``{north:0,[{master 1} {worker 2}]}``."""
        roles = " ".join(f"{{{name} {replicas}}}" for name, replicas, _ in self.gang.roles)
        return f"{{{self.spot.cluster.name}:0,[{roles}]}}"


@dataclass(frozen=True, slots=True)
class Waits:
    gang: Gang
    reason: Reason


@dataclass(slots=True)
class Plan:
    placed: list[Placed] = field(default_factory=list)
    waits: list[Waits] = field(default_factory=list)
    claimants: list[Gang] = field(default_factory=list)
    """Of those who wait, in their order, who might have a place taken back for them."""
    tree_version: int = 0
    """Of the quota tree it was made by; 0: there was none."""


def run(world: World, now: datetime) -> Plan:
    with world.quota.ledger.charged(()) if world.quota else nullcontext():
        return _Pass(world, now).run()


class _Pass:
    def __init__(self, world: World, now: datetime) -> None:
        self.world, self.now = world, now
        self.plan = Plan(tree_version=world.quota.version if world.quota else 0)
        held_back = [(gang, _held_back(gang, world)) for gang in world.waiting]
        self.plan.waits += [Waits(gang, reason) for gang, reason in held_back if reason]
        self.gate = Gate(world.quota, (gang for gang, reason in held_back if not reason))
        self.refused: dict[int, Reason] = {}
        """Gangs of one shape get the same answer: room only shrinks within a cycle, so a no stays a no."""
        self.promises = Promises(world, now)
        self.claimed: Counter[object] = Counter()
        self.looked: dict[int, tuple[Verdict, ...]] = {}
        self.shapes: dict[int, int] = {}
        self.numbers: dict[object, int] = {}
        self.told: dict[tuple[int, int], Reason] = {}

    def run(self) -> Plan:
        while (gang := self.gate.next()) is not None:  # 1. who is next
            answer = self.gate.ask(gang) or self.promises.forbid(gang)  # 2. may it
            if answer is not None:
                self.gate.refused(answer)
                continue
            spot = self.find(gang)  # 3. where
            if isinstance(spot, Reason):
                self.gate.passed()
                self.claims(gang, _crowded(spot))
                self.plan.waits.append(Waits(gang, replace(spot, quota=_admits(gang))))
                continue
            self.gate.admitted(gang)  # 4. write it down
            self.promises.placed(gang)
            self.plan.placed.append(Placed(gang, spot))
            self.world = self.world.after(spot.cluster.name, spot.asked)  # 5. the next gang sees it
        for gang, no in self.gate.waits():
            self.claims(gang, isinstance(no, Refused) and no.code is not Quota.NEVER_FITS and no.bound is Bound.MAX)
            self.plan.waits.append(Waits(gang, self.tell(gang, no)))
        return self.plan

    def tell(self, gang: Gang, no: Refused | Behind) -> Reason:
        """One reason for all who have the same answers."""
        key = id(no), self.shape(gang)
        if key not in self.told:
            told = gate.verdict(no)
            self.told[key] = Reason(told.code, told.message, self.look(gang), told)
        return self.told[key]

    def claims(self, gang: Gang, crowded_out: bool) -> None:
        alike = (gang.leaf, self.shape(gang))
        if crowded_out and gang.asks_quota and self.claimed[alike] < ALIKE:
            self.claimed[alike] += 1
            self.plan.claimants.append(gang)

    def find(self, gang: Gang) -> Spot | Reason:
        alike = self.shape(gang)
        if alike in self.refused:
            return self.refused[alike]
        spot = find(gang, self.promises.seen_by(gang, self.world), self.now)
        if isinstance(spot, Reason):
            self.refused[alike] = spot
        return spot

    def shape(self, gang: Gang) -> int:
        """The same number for gangs that every cluster answers alike."""
        known = self.shapes.get(gang.job_id)
        if known is None:
            known = self.numbers.setdefault(self._shape(gang), len(self.numbers))
            self.shapes[gang.job_id] = known
        return known

    def _shape(self, gang: Gang) -> object:
        roles = tuple((name, replicas, tuple(sorted(request.items()))) for name, replicas, request in gang.roles)
        excluded = tuple(sorted(gang.excluded.items()))
        return (
            gang.api_version,
            gang.kind,
            roles,
            id(gang.policy),
            excluded,
            _only(gang, self.world),
            self.promises.claim(gang),
        )

    def look(self, gang: Gang) -> tuple[Verdict, ...]:
        """What the clusters say to one whom the quota refuses: their noes are worth knowing before the quota's yes."""
        alike = self.shape(gang)
        if alike not in self.looked:
            spot = self.find(gang)
            self.looked[alike] = spot.clusters if isinstance(spot, Reason) else spot.verdicts
        return self.looked[alike]


def find(gang: Gang, world: World, now: datetime) -> Spot | Reason:
    """Its place, on one of the clusters that its queue may use."""
    only = _only(gang, world)
    if not only:
        return placement.find(gang, world.clusters, world.axis, now)
    barred = tuple(_barred(cluster.name, gang.leaf, only) for cluster in world.clusters if cluster.name not in only)
    spot = placement.find(gang, [cluster for cluster in world.clusters if cluster.name in only], world.axis, now)
    if isinstance(spot, Reason):
        return reasons.no_cluster_fits(sorted((*spot.clusters, *barred), key=lambda verdict: verdict.cluster))
    return replace(spot, verdicts=(*spot.verdicts, *barred))


def _only(gang: Gang, world: World) -> tuple[str, ...]:
    """The clusters its queue may use; empty: all."""
    node = world.quota.ledger.tree.by_path.get(gang.leaf) if world.quota else None
    return node.attributes.cluster_affinity if node else ()


def _barred(cluster: str, leaf: str, only: tuple[str, ...]) -> Verdict:
    return Verdict(cluster, Code.NOT_SELECTED, f"is not for queue {leaf}, which uses {', '.join(only)} alone")


def _crowded(reason: Reason) -> bool:
    """Whether it would fit somewhere if others were gone, as far as can be told without trying."""
    return any(verdict.code in (Code.NOT_ENOUGH_FREE, Code.NO_NODE_FOR_POD) for verdict in reason.clusters)


def _admits(gang: Gang) -> QuotaVerdict | None:
    return QuotaVerdict(Code.FITS, gang.leaf, f"{gang.leaf} has room for it") if gang.leaf else None


def _held_back(gang: Gang, world: World) -> Reason | None:
    """Why it is not even looked at; None: it is."""
    if gang.policy is None:
        return Reason(
            Code.NO_POLICY,
            f"no PropagationPolicy of its namespace and no ClusterPropagationPolicy selects this {gang.kind}",
        )
    if gang.charged:
        return None
    if world.quota is None:
        return _suspended() if gang.policy.suspended else None
    if not gang.leaf and (gang.leaf_fault or gang.policy.suspended):
        return _no_quota(gang)
    if closed := world.quota.closed.get(gang.leaf):
        told = f"queue {closed.path} ({closed.name}) is {closed.state.lower()} and lets nobody start"
        facts = {"queue": closed.name, "state": closed.state}
        return Reason(Code.QUEUE_HELD, told, (), QuotaVerdict(Code.QUEUE_HELD, closed.path, told, facts))
    return None


def _suspended() -> Reason:
    told = "its policy sets suspension.scheduling: true and there is no quota tree whose queue could release it"
    return Reason(Code.SCHEDULING_SUSPENDED, told)


def _no_quota(gang: Gang) -> Reason:
    namespace = gang.name.partition("/")[0]
    told = gang.leaf_fault or f"namespace {namespace} is in no leaf of the quota tree, and the job names none by label"
    return Reason(Code.NO_QUOTA_FOR_NAMESPACE, told, (), QuotaVerdict(Code.NO_QUOTA_FOR_NAMESPACE, "", told))
