"""The nearest changes that would let a waiting gang start: each was tried on the engine before it is offered.

A change is something a person can do or wait for: take a cordon away, tolerate a taint, add nodes, let jobs end. The engine
given is changed for the trial and put back; it must be the caller's own. Quotas are not known here, and which of the changes
concern a job at all is for `jobs.core.explain.remedies` to say.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from jobs.core import reasons
from jobs.core.explain.remedies import PLACEMENT, Change, JobRef, Kind
from jobs.core.gang.requirements import ANY_NAME, NODE_NAME, GangRequirements, NodeClass
from jobs.core.gang.types import CapacityHold, Gang
from jobs.core.placement.engine import Engine
from jobs.core.placement.explaining import Cause, Look, explain_clusters
from jobs.core.placement.types import Member, NodeFacts
from jobs.core.policies.propagation import Affinity, PolicySpec
from jobs.core.reasons import Amounts, Code
from jobs.core.taints import Taint, Toleration, untolerated

_TRIED = 12
"""Jobs whose end is tried, and nodes that are added, at most, one cluster at a time."""
_CLASSES = 4
_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Occupant:
    """A job that runs on a cluster, and what of which nodes is free once it has ended."""

    name: str
    frees: tuple[tuple[NodeFacts, Amounts], ...]
    uid: str = ""

    @property
    def ref(self) -> JobRef:
        amounts: Counter[str] = Counter()
        for _, freed in self.frees:
            amounts.update(freed)
        return JobRef(self.uid, self.name, dict(amounts))


def nearest_changes(
    engine: Engine, gang: Gang, demand: GangRequirements, now: datetime, occupants: Callable[[str], Sequence[Occupant]]
) -> list[Change]:
    """At most one for every cluster that could hold the gang and does not now: the first, in the order of what it takes."""
    trial = _Trial(engine, gang, demand, now)
    fixes = [
        trial.first(look, occupants)
        for look in explain_clusters(engine, gang, demand, now)
        if look.code is not Code.FITS
    ]
    changes = [change for change in fixes if change is not None]
    return sorted(changes, key=lambda change: (PLACEMENT.index(change.kind), change.count, change.cluster))


def nodes_to_add(
    engine: Engine,
    gang: Gang,
    demand: GangRequirements,
    now: datetime,
    looks: Sequence[Look],
    nodes: Callable[[str], Sequence[NodeFacts]],
) -> Change | None:
    """The fewest nodes that would let one of these clusters hold the gang once it is empty; for a gang that fits nowhere."""
    trial = _Trial(engine, gang, demand, now)
    unfit = [look for look in looks if look.cause is not Cause.FILTER]
    changes = [change for look in unfit if (change := trial.enlarged(look, nodes(look.cluster)))]
    return min(changes, key=lambda change: (change.count, change.beside, change.cluster), default=None)


def largest_fitting(engine: Engine, demand: GangRequirements, looks: Sequence[Look]) -> Change | None:
    """What the gang, or one of its pods where the nodes are too small, may ask for at most to fit an empty cluster."""
    allowed = [look for look in looks if look.cause is not Cause.FILTER]
    small = [look for look in allowed if look.cause is Cause.NODE_TOO_SMALL]
    by_pod = bool(small) and len(small) == len(allowed)
    role = small[0].role if by_pod else ""
    request = next((dict(part.ask.request) for part in demand.parts if part.role == role), {}) if role else demand.total
    resources = [name for name in request if "/" in name] or [name for name in request if name != "pods"]
    room = {
        name: max((_most(engine, look.cluster, name, one=by_pod) for look in allowed), default=0) for name in resources
    }
    least = {name: room[name] for name in resources if 0 < room[name] < request[name]}
    if not least or any(not room[name] for name in resources):
        return None
    whose = f" for one {role} pod" if role else ""
    return Change(Kind.LOWER_REQUEST, f"ask for at most {reasons.amounts(least)}{whose}", role=role, amounts=least)


def _most(engine: Engine, cluster: str, resource: str, *, one: bool) -> int:
    """How much of a resource the usable nodes of a cluster have together, or ``one`` of them at most, when empty."""
    states, sizes = engine.fleet.states, [0]
    for bucket in engine.fleet.sites[cluster].buckets:
        kind = states.classes[bucket.state.kind]
        if kind.usable and bucket.names:
            amount = dict(kind.allocatable).get(resource, 0)
            sizes.append(amount if one else amount * len(bucket.names))
    return max(sizes) if one else sum(sizes)


def fits_without(
    engine: Engine,
    gang: Gang,
    demand: GangRequirements,
    now: datetime,
    ended: Mapping[str, Sequence[Occupant]],
    holds: Sequence[CapacityHold],
) -> bool:
    """Whether some cluster holds the gang once these jobs, by cluster, have ended and nothing is held for them any more."""
    trial = _Trial(engine, gang, demand, now)
    for hold in holds:
        engine.release(hold.key)
    try:
        return any(trial.fits_after(cluster, some) for cluster, some in ended.items())
    finally:
        for hold in holds:
            engine.hold(hold)


def describe_wait(names: Sequence[str], count: int, hidden: int = 0) -> str:
    """``wait until a/b ends``; of more than have to end, ``wait until 1 of these ends: a/b, c/d and 2 of other teams``."""
    others = f"{hidden} of other teams" if hidden else ""
    text = " and ".join(part for part in (", ".join(names), others) if part)
    if count < len(names) + hidden:
        return f"wait until {count} of these {'ends' if count == 1 else 'end'}: {text}"
    return f"wait until {text} {'ends' if count == 1 else 'end'}"


class _Trial:
    def __init__(self, engine: Engine, gang: Gang, demand: GangRequirements, now: datetime) -> None:
        self.engine, self.gang, self.demand, self.now = engine, gang, demand, now

    def fits(self, cluster: str, gang: Gang | None = None) -> bool:
        asking = gang or self.gang
        others = {name: _NEVER for name in self.engine.members if name != cluster}
        asking = replace(asking, excluded={**asking.excluded, **others})
        return self.engine.find(asking, self.demand, self.now) is not None

    def first(self, look: Look, occupants: Callable[[str], Sequence[Occupant]]) -> Change | None:
        if look.cause is Cause.FILTER:
            return self.lift(look)
        if look.never:
            return None
        if (change := self.without(look.cluster, occupants(look.cluster))) is not None:
            return change
        return self.wider(look)

    def lift(self, look: Look) -> Change | None:
        """The filter taken away, when nothing else is in the way."""
        name, member = look.cluster, self.engine.members[look.cluster]
        match look.code:
            case Code.NOT_READY if self._fits_as(replace(member, ready=True)):
                return Change(Kind.RESTORE_CLUSTER, f"bring {name} back: it does not answer", name)
            case Code.CORDONED if self._fits_as(replace(member, cordoned=False)):
                return Change(Kind.UNCORDON, f"uncordon {name}", name)
            case Code.UNTOLERATED_TAINT:
                return self.tolerate(member)
            case Code.FAILED_HERE if self.fits(name, replace(self.gang, excluded={})):
                until = self.gang.excluded[name]
                return Change(
                    Kind.WAIT_UNTIL, f"wait until {until:%H:%M:%S} UTC, when {name} is tried again", name, at=until
                )
            case Code.NOT_SELECTED if self.gang.policy and self.fits(name, replace(self.gang, policy=_open(self.gang))):
                return Change(Kind.SELECT, f"let the policy's clusterAffinity select {name}", name)
        return None

    def tolerate(self, member: Member) -> Change | None:
        policy = self.gang.policy or PolicySpec()
        missing: list[Taint] = []
        tolerations = policy.tolerations
        while (taint := untolerated(member.taints, tolerations)) is not None and len(missing) < len(member.taints):
            missing.append(taint)
            tolerations = (*tolerations, Toleration(taint.key, "Exists", "", taint.effect, None))
        if not self.fits(member.name, replace(self.gang, policy=replace(policy, tolerations=tolerations))):
            return None
        text = ", ".join(str(taint) for taint in missing)
        return Change(
            Kind.TOLERATE,
            f"remove the taint {text} of {member.name}, or tolerate it in the policy",
            member.name,
            comment=text,
        )

    def without(self, cluster: str, running: Sequence[Occupant]) -> Change | None:
        """One job's end if one suffices, the one that frees least; else as many as it takes, the small ones first."""
        ordered = sorted(running, key=lambda each: (self._weight(each), each.name))[:_TRIED]
        for some in (*([each] for each in ordered), *(ordered[:n] for n in range(2, len(ordered) + 1))):
            if self.fits_after(cluster, some):
                text = describe_wait([each.name for each in some], len(some)) + f" on {cluster}"
                jobs = tuple(each.ref for each in some)
                return Change(Kind.WAIT_FOR_JOBS, text, cluster, jobs=jobs, count=len(some))
        return None

    def wider(self, look: Look) -> Change | None:
        """More nodes like some that the cluster has: of the class that needs fewest."""
        counted = [(count, model) for model in self.models(look.cluster) if (count := self.needed(look.cluster, model))]
        if not counted:
            return None
        count, model = min(counted, key=lambda each: each[0])
        devices = {name: amount for name, amount in model.allocatable.items() if "/" in name}
        text = f"{count} node{'s' if count > 1 else ''} with {reasons.amounts(devices or model.allocatable)}"
        amounts = dict(model.allocatable)
        return Change(Kind.ADD_NODES, f"add {text} to {look.cluster}", look.cluster, count=count, amounts=amounts)

    def enlarged(self, look: Look, nodes: Sequence[NodeFacts]) -> Change | None:
        """As `wider`, on the cluster without its jobs, and how many it takes beside them."""
        beside = self.wider(look)
        for node in nodes:
            self.engine.set_node(look.cluster, replace(node, requested={}))
        try:
            change = self.wider(look)
        finally:
            for node in nodes:
                self.engine.set_node(look.cluster, node)
        return change and replace(change, beside=beside.count if beside else 0)

    def needed(self, cluster: str, model: NodeFacts) -> int:
        """How many empty nodes like ``model`` it takes; 0: more than are tried."""
        for count in range(1, _TRIED + 1):
            if self._fits_with(cluster, [replace(model, name=f"{ANY_NAME}{i}") for i in range(count)]):
                return count
        return 0

    def models(self, cluster: str) -> list[NodeFacts]:
        """An empty node of each of the cluster's most frequent classes."""
        fleet = self.engine.fleet
        counted: Counter[NodeClass] = Counter()
        for bucket in fleet.sites[cluster].buckets:
            counted[fleet.states.classes[bucket.state.kind]] += len(bucket.names)
        usual = sorted((kind for kind in counted if kind.usable), key=lambda kind: (-counted[kind], str(kind)))
        return [_node(kind) for kind in usual[:_CLASSES]]

    def _weight(self, occupant: Occupant) -> int:
        """How much of what the gang asks it frees, in devices if the gang asks for some."""
        resources = {name for name in self.demand.total if "/" in name} or set(self.demand.total)
        return sum(amount for _, freed in occupant.frees for r, amount in freed.items() if r in resources)

    def _fits_as(self, member: Member) -> bool:
        was = self.engine.members[member.name]
        self.engine.set_cluster(member)
        try:
            return self.fits(member.name)
        finally:
            self.engine.set_cluster(was)

    def _fits_with(self, cluster: str, nodes: Sequence[NodeFacts]) -> bool:
        for node in nodes:
            self.engine.set_node(cluster, node)
        try:
            return self.fits(cluster)
        finally:
            for node in nodes:
                self.engine.drop_node(cluster, node.name)

    def fits_after(self, cluster: str, ended: Sequence[Occupant]) -> bool:
        before: dict[str, NodeFacts] = {}
        freed: dict[str, dict[str, int]] = {}
        for each in ended:
            for node, amounts in each.frees:
                before[node.name] = node
                left = freed.setdefault(node.name, dict(node.requested))
                for resource, amount in amounts.items():
                    left[resource] = left.get(resource, 0) - amount
        for name, node in before.items():
            self.engine.set_node(cluster, replace(node, requested=freed[name]))
        try:
            return self.fits(cluster)
        finally:
            for node in before.values():
                self.engine.set_node(cluster, node)


def _open(gang: Gang) -> PolicySpec:
    return replace(gang.policy or PolicySpec(), affinities=(Affinity(),))


def _node(kind: NodeClass) -> NodeFacts:
    labels = {key: value for key, value in kind.labels if key != NODE_NAME and value != ANY_NAME}
    return NodeFacts("", dict(kind.allocatable), labels=labels, taints=kind.taints)
