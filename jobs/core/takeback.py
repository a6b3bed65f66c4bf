"""Whom to take back from, for those who wait although they were promised their place: asked once the cycle is over.

It is played in the world *to come*, where everybody who leaves is gone. There the claimants stand in their order: one that fits
is content and waits; one that does not names victims, by `quotas.core.reclaim`, if it could then really be placed; or it is
left alone. So what is on its way is never ordered twice. How somebody is made to leave is not known here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from jobs.core import cycle
from jobs.core.cycle import Plan
from jobs.core.gate import unit_of
from jobs.core.losses import Loss
from jobs.core.placement import Spot
from jobs.core.world import Gang, Runner, World
from quotas.core import admission, reclaim
from quotas.core.admission import Admitted
from quotas.core.ledger import Ledger
from quotas.core.reclaim import Running, Victim

SEARCHES = 50
"""How many claimants may look for victims in one cycle: the ones first in line; the others are looked at in the next."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One who has to leave, for whom, where that one goes, and why."""

    runner: Runner
    claimant: Gang
    goes_to: str
    victim: Victim


@dataclass(slots=True)
class Takeback:
    taken: list[Taken] = field(default_factory=list)
    content: dict[int, list[Runner]] = field(default_factory=dict)
    """Whose room is on its way: job -> those who leave for it already."""


def plan(
    world: World, made: Plan, runners: Sequence[Runner], now: datetime, losses: Mapping[int, Loss] | None = None
) -> Takeback:
    """``losses``: what stopping each of the runners would cost, by job, where that is known."""
    if world.quota is None or not made.claimants:
        return Takeback()
    ledger = world.quota.ledger
    charges = [each.gang.charge for each in made.placed if each.gang.asks_quota]
    for each in made.placed:
        world = world.after(each.spot.cluster.name, each.spot.asked)
    with ledger.charged(charges), ledger.released([each.charge for each in world.leaving]):
        return _Play(world.without(world.leaving), ledger, runners, losses or {}, now).run(made.claimants)


class _Play:
    def __init__(
        self, world: World, ledger: Ledger, runners: Sequence[Runner], losses: Mapping[int, Loss], now: datetime
    ) -> None:
        self.world, self.ledger, self.now = world, ledger, now
        self.runners = {str(runner.job_id): runner for runner in runners}
        self.running = {key: _running(key, each, losses.get(each.job_id, Loss())) for key, each in self.runners.items()}
        """Who may still be taken; made once, for it is what every search goes through."""
        self.hopeless: set[object] = set()
        """Shapes that found nobody: with less room and fewer to take from, the next of the same will not either."""
        self.made = Takeback()

    def run(self, claimants: Sequence[Gang]) -> Takeback:
        awaited = {runner.leaves_for for runner in self.world.leaving}
        searches = 0
        for gang in sorted(claimants, key=lambda gang: (gang.job_id not in awaited, unit_of(gang).place)):
            if self._content(gang):
                self.made.content[gang.job_id] = [r for r in self.world.leaving if r.leaves_for == gang.job_id]
            elif searches < SEARCHES and _shape(gang) not in self.hopeless:
                searches += 1
                self._search(gang)
        return self.made

    def _content(self, gang: Gang) -> bool:
        """Whether it fits once those have left who leave already; then it has its place there."""
        charge = gang.charge
        answer = admission.ask(self.ledger, charge.leaf, charge.amounts, preemptible=charge.preemptible)
        spot = cycle.find(gang, self.world, self.now) if isinstance(answer, Admitted) else None
        return isinstance(spot, Spot) and self._settle(gang, spot)

    def _settle(self, gang: Gang, spot: Spot) -> bool:
        self.ledger.charge(gang.charge)
        self.world = self.world.after(spot.cluster.name, spot.asked)
        return True

    def _search(self, gang: Gang) -> None:
        def can_place(keys: frozenset[str]) -> bool:
            return isinstance(self._spot(gang, keys), Spot)

        unit = unit_of(gang)
        found = reclaim.plan(self.ledger, unit, self.running.values(), can_place)
        keys = frozenset(victim.key for victim in found.victims) if found else frozenset()
        spot = self._spot(gang, keys)
        if found is None or not isinstance(spot, Spot):
            self.hopeless.add(_shape(gang))
            return
        for victim in found.victims:
            runner = self.runners[victim.key]
            self.ledger.release(self.running.pop(victim.key).charge)
            self.world = self.world.without([runner])
            self.made.taken.append(Taken(runner, gang, spot.cluster.name, victim))
        self._settle(gang, spot)

    def _spot(self, gang: Gang, keys: frozenset[str]) -> object:
        return cycle.find(gang, self.world.without(self.runners[key] for key in sorted(keys)), self.now)


def _shape(gang: Gang) -> object:
    return unit_of(gang).shape, id(gang.policy), tuple(sorted(gang.excluded.items()))


def _running(key: str, runner: Runner, loss: Loss) -> Running:
    return Running(key, runner.charge, runner.priority, runner.started_at, loss.elastic, loss.checkpointed)
