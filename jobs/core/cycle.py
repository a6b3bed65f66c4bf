"""The scheduling cycle: who is next, where it goes, write it down, the next one sees it.

Pure: the world and the time come in, a plan goes out; the same world gives the same plan. It knows neither the
database nor members. A gang that fits nowhere does not stop those behind it.
"""

from dataclasses import dataclass, field
from datetime import datetime

from jobs.core import placement
from jobs.core.placement import Spot
from jobs.core.reasons import Code, Reason
from jobs.core.world import Gang, World


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


def run(world: World, now: datetime) -> Plan:
    plan = Plan()
    refused: dict[object, Reason] = {}
    for gang in sorted(world.waiting, key=_order):  # 1. who is next
        alike = _shape(gang)
        verdict = _held_back(gang) or refused.get(alike)  # 2. may it
        spot = verdict or placement.find(gang, world.clusters, world.axis, now)  # 3. where
        if isinstance(spot, Reason):  # 4. write it down
            refused[alike] = spot
            plan.waits.append(Waits(gang, spot))
            continue
        plan.placed.append(Placed(gang, spot))
        world = world.after(spot.cluster.name, spot.asked)  # 5. the next gang sees it
    return plan


def _order(gang: Gang) -> tuple[int, datetime, str, int]:
    return (-gang.priority, gang.queued_at, gang.name, gang.job_id)


def _shape(gang: Gang) -> object:
    """Gangs of one shape get the same answer: room only shrinks within a cycle, so a no stays a no."""
    roles = tuple((name, replicas, tuple(sorted(request.items()))) for name, replicas, request in gang.roles)
    return gang.api_version, gang.kind, roles, id(gang.policy), tuple(sorted(gang.excluded.items()))


def _held_back(gang: Gang) -> Reason | None:
    if gang.policy is None:
        return Reason(
            Code.NO_POLICY,
            f"no PropagationPolicy of its namespace and no ClusterPropagationPolicy selects this {gang.kind}",
        )
    if gang.policy.suspended:
        return Reason(
            Code.SCHEDULING_SUSPENDED,
            "its policy sets suspension.scheduling: true and no queue has released it",
        )
    return None
