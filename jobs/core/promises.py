"""What is spoken for: while jobs leave to make room for a claimant, nobody else may take what they free.

The ledger and the clusters *to come* have everybody gone who leaves, and the claimants in their place. Whoever is no claimant
needs room there as well as in the world as it is: so a victim cannot come back for its place, nor a third one slip in.
It holds until the claimant has its place, whose turn may come after that of others. Only a cycle with somebody on the way
out, or just gone, has any of this.
"""

import copy
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from jobs.core.world import Cluster, Gang, Vector, World
from quotas.core import admission
from quotas.core.admission import Refused

KEPT = timedelta(minutes=1)
"""How long after its time to leave what a victim gave back is kept for a claimant that has not taken it yet."""


class Promises:
    """Counts along as the cycle places others and, at last, the claimants themselves."""

    def __init__(self, world: World, now: datetime) -> None:
        waiting = {gang.job_id: gang for gang in world.waiting if gang.asks_quota}
        leaving = [runner for runner in world.leaving if runner.leaves_for in waiting]
        kept = [each for each in world.left if each.leaves_for in waiting and each.until and now < each.until + KEPT]
        self.claimants = {runner.leaves_for for runner in (*leaving, *kept)}
        self._reserved = {job: _reserved(waiting[job], world) for job in self.claimants}
        self._ledger = copy.copy(world.quota.ledger) if world.quota and self.claimants else None
        if self._ledger is None:
            return
        self._ledger.held = self._ledger.held.copy()
        for runner in leaving:
            self._ledger.release(runner.charge)
        for job in self.claimants:
            self._ledger.charge(waiting[job].charge)

    def forbid(self, gang: Gang) -> Refused | None:
        """The quota's no to one who would take what is promised to another; None when nothing is."""
        if self._ledger is None or gang.job_id in self.claimants or not gang.asks_quota:
            return None
        charge = gang.charge
        answer = admission.ask(self._ledger, charge.leaf, charge.amounts, preemptible=charge.preemptible)
        return answer if isinstance(answer, Refused) else None

    def seen_by(self, gang: Gang, world: World) -> World:
        """The world with what is promised to others taken out of it."""
        spoken_for: dict[str, Vector] = {}
        for job, (name, amount) in self._reserved.items():
            if job != gang.job_id:
                spoken_for[name] = spoken_for.get(name, 0) + amount
        if not spoken_for:
            return world
        return replace(world, clusters=tuple(_less(cluster, spoken_for) for cluster in world.clusters))

    def claim(self, gang: Gang) -> int:
        """The claimant itself sees another world than all the others: 0."""
        return gang.job_id if gang.job_id in self.claimants else 0

    def placed(self, gang: Gang) -> None:
        if gang.job_id in self.claimants:
            self.claimants.discard(gang.job_id)
            self._reserved.pop(gang.job_id)
        elif self._ledger is not None and gang.asks_quota:
            self._ledger.charge(gang.charge)


def _reserved(claimant: Gang, world: World) -> tuple[str, Vector]:
    """Its cluster, and what of its total is free there already: the rest is still in use by those who leave."""
    mine = [runner for runner in world.leaving if runner.leaves_for == claimant.job_id]
    gone = [runner for runner in world.left if runner.leaves_for == claimant.job_id]
    name = next((runner.goes_to for runner in (*mine, *gone) if runner.goes_to), "")
    left = world.axis.known(claimant.total)
    for runner in mine:
        if runner.cluster == name:
            left = left - world.axis.known(runner.total)
    return name, np.maximum(left, 0)


def _less(cluster: Cluster, spoken_for: dict[str, Vector]) -> Cluster:
    return cluster.minus(spoken_for[cluster.name]) if cluster.name in spoken_for else cluster
