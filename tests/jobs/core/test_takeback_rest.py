"""No-flap, in fleets made to quarrel: scattered nodes, queues that preempt by priority, gangs that may borrow, slow departures.

Each seed is one fleet whose jobs never end: admission and reclaim in turn have to come to rest, and then do nothing. Two things
kept some of them going for ever: room that was no longer kept for its claimant when a victim left late, and a
claimant that stood behind a job that never fits.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

import pytest

from jobs.core import takeback
from jobs.core.scheduler import Scheduler
from jobs.core.world import Gang, Promise, Runner, Site
from tests.jobs.core.builders import NOON, cluster, node
from tests.jobs.core.test_cycle_quotas import GPU, PLENTY, a_quota, mine, under
from tests.quotas.core.builders import quota

LEAVES = "abc"


@dataclass
class Fleet:
    gangs: dict[int, Gang]
    leaves: list[dict]
    total: int
    nodes: list[list[int]]
    pace: timedelta
    """From one cycle to the next."""
    lag: int
    """How many cycles it takes to leave."""
    running: dict[int, Runner] = field(default_factory=dict)
    leaving: dict[int, tuple[Runner, int]] = field(default_factory=dict)
    left: dict[int, Runner] = field(default_factory=dict)
    held: dict[int, Promise] = field(default_factory=dict)

    def step(self, number: int) -> int:
        """How many were taken back from."""
        now = NOON + number * self.pace
        self._depart(number, now)
        runners, going = list(self.running.values()), [runner for runner, _ in self.leaving.values()]
        rules = a_quota(*self.leaves, charges=[e.charge for e in runners + going], total={**PLENTY, GPU: self.total})
        waiting = [gang for job, gang in self.gangs.items() if job not in self.running and job not in self.leaving]
        sites = [self._site(f"c{i}", sizes) for i, sizes in enumerate(self.nodes)]
        scheduler = Scheduler.of(under(rules, waiting, sites, going, self.left.values()))
        plan = scheduler.run(now)
        made = takeback.plan(scheduler, plan, lambda: runners, now)
        for each in plan.placed:
            gang, key = each.gang, ("run", each.gang.job_id)
            self.left.pop(gang.job_id, None)
            self.held[gang.job_id] = each.spot.promise(key)
            made_by = (gang.charge, gang.priority, now, each.spot.cluster, gang.total)
            self.running[gang.job_id] = Runner(gang.job_id, gang.name, *made_by, promise=key)
        for each in made.taken:
            order = {"leaves_for": each.claimant.job_id, "goes_to": each.goes_to, "until": now}
            self.leaving[each.runner.job_id] = replace(self.running.pop(each.runner.job_id), **order), number + self.lag
        return len(made.taken)

    def _depart(self, number: int, now: datetime) -> None:
        for job, (runner, until) in list(self.leaving.items()):
            if number > until:
                del self.leaving[job]
                del self.held[job]
                self.left[job] = replace(runner, cluster="", promise=None, until=now)

    def _site(self, name: str, sizes: list[int]) -> Site:
        made = cluster(name, [node(size) for size in sizes])
        return replace(made, promises=tuple(each for each in self.held.values() if each.cluster == name))


def quarrelling(rng: Random) -> Fleet:
    total, leaves = rng.choice([rng.randint(6, 16), 40]), []
    left = total
    for name in LEAVES[: rng.choice([2, 3, 3])]:
        low = rng.choice([0, left // 2, rng.randint(0, left)])
        left -= low
        policy = {"preempt-policy": rng.choice(["PreemptLowerPriority"] * 6 + ["Never"])}
        leaves.append(quota(name, {GPU: low}, {GPU: total}, attributes=policy))
    gangs = {}
    for job in range(1, rng.randint(6, 13)):
        sizes = {"workers": rng.randint(0, 3), "gpus": rng.randint(1, 4), "priority": rng.randint(0, 3)}
        leaf = rng.choice(LEAVES[: len(leaves)])
        gangs[job] = mine(f"g{job}", leaf, job_id=job, after_s=rng.randint(0, 4), **sizes)
    nodes = [[rng.randint(1, 8) for _ in range(rng.randint(1, 2))] for _ in range(rng.randint(2, 4))]
    return Fleet(gangs, leaves, total, nodes, timedelta(seconds=rng.choice([1, 30, 61])), rng.randint(0, 2))


@pytest.mark.parametrize("seed", range(24))
def test_it_comes_to_rest_whoever_quarrels(seed):
    fleet = quarrelling(Random(seed))
    taken = [fleet.step(number) for number in range(3 * len(fleet.gangs) + 12)]
    assert taken[-6:] == [0] * 6
