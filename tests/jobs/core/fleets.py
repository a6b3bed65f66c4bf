"""Fleets made to quarrel, played cycle after cycle: scattered nodes, queues that preempt, gangs that borrow, slow leavers."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

from jobs.core.admission.snapshot import ClusterState, Quota, Snapshot
from jobs.core.gang.types import AdmittedGang, CapacityHold, Gang
from jobs.core.preemption import lending, planner
from jobs.core.scheduling.scheduler import Scheduler
from tests.jobs.core.builders import GPU, NOON, PLENTY, a_quota, cluster, gang, mine, node, request, under
from tests.quotas.core.builders import LEND, quota

LEAVES = "abc"
CORES = 4
"""Of a node, for each of its GPUs, where jobs ask for both in whatever proportion."""


@dataclass
class Fleet:
    gangs: dict[int, Gang]
    """They never end."""
    tree: list[dict]
    total: dict
    nodes: list[list[list[int]]]
    """Of each cluster, what its nodes have."""
    pace: timedelta = timedelta(seconds=1)
    """From one cycle to the next."""
    lag: int = 0
    """How many cycles it takes to leave."""
    comes: dict[int, int] = field(default_factory=dict)
    """After which cycle a job is submitted; else it is there from the start."""
    running: dict[int, AdmittedGang] = field(default_factory=dict)
    leaving: dict[int, tuple[AdmittedGang, int]] = field(default_factory=dict)
    left: dict[int, AdmittedGang] = field(default_factory=dict)
    held: dict[int, CapacityHold] = field(default_factory=dict)
    cycles: int = 0

    def step(self) -> int:
        """How many were taken back from."""
        self.cycles += 1
        now = NOON + self.cycles * self.pace
        self._depart(now)
        runners, scheduler = list(self.running.values()), Scheduler.from_snapshot(self.world())
        plan, made = lending.withdraw_lent(
            scheduler,
            scheduler.run(now),
            lambda plan: planner.plan_preemption(scheduler, plan, lambda: runners, now),
            now,
        )
        for each in plan.placed:
            self._start(each.gang, each.placement.hold(("run", each.gang.job_id)), now)
        for each in made.evictions:
            order = {"leaves_for": each.preemptor.job_id, "goes_to": each.goes_to, "ordered_at": now, "until": now}
            gone = self.running.pop(each.target.job_id)
            self.leaving[gone.job_id] = replace(gone, **order), self.cycles + self.lag
        return len(made.evictions)

    def world(self) -> Snapshot:
        absent = {*self.running, *self.leaving, *(job for job, after in self.comes.items() if after >= self.cycles)}
        waiting = [each for job, each in self.gangs.items() if job not in absent]
        sites = [self._site(f"c{i}", made) for i, made in enumerate(self.nodes)]
        going = [runner for runner, _ in self.leaving.values()]
        return under(self.rules(), waiting, sites, going, self.left.values())

    def rest(self) -> bool:
        """Whether nothing is taken back any more after a while."""
        for _ in range(3 * len(self.gangs) + 6 + max(self.comes.values(), default=0)):
            self.step()
        return [self.step() for _ in range(6)] == [0] * 6

    def rules(self) -> Quota:
        charges = [each.charge for each in (*self.running.values(), *(runner for runner, _ in self.leaving.values()))]
        return a_quota(*self.tree, charges=charges, total={**PLENTY, **self.total})

    def free(self) -> dict[str, int]:
        """GPUs of each cluster that nobody holds."""
        found = {f"c{i}": sum(made[2] for made in nodes) for i, nodes in enumerate(self.nodes)}
        for hold in self.held.values():
            found[hold.cluster] -= hold.total.get(GPU, 0)
        return found

    def _start(self, gang: Gang, hold: CapacityHold, now: datetime) -> None:
        self.left.pop(gang.job_id, None)
        self.held[gang.job_id] = hold
        made_by = (gang.charge, gang.priority, now, hold.cluster, gang.total)
        self.running[gang.job_id] = AdmittedGang(
            gang.job_id, gang.name, *made_by, hold_key=("run", gang.job_id), admitted_at=now
        )

    def _depart(self, now: datetime) -> None:
        for job, (runner, until) in list(self.leaving.items()):
            if self.cycles > until:
                del self.leaving[job]
                del self.held[job]
                self.left[job] = replace(runner, cluster="", hold_key=None, until=now)

    def _site(self, name: str, nodes: list[list[int]]) -> ClusterState:
        made = cluster(name, nodes)
        return replace(made, holds=tuple(each for each in self.held.values() if each.cluster == name))


def backwards(seen: Snapshot) -> Snapshot:
    """The same, told the other way round."""
    return replace(seen, waiting=seen.waiting[::-1], sites=seen.sites[::-1], evicted=seen.evicted[::-1])


def quarrelling(rng: Random) -> Fleet:
    """A few queues of one resource."""
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
    nodes = [[node(rng.randint(1, 8)) for _ in range(rng.randint(1, 2))] for _ in range(rng.randint(2, 4))]
    pace = timedelta(seconds=rng.choice([1, 30, 61]))
    return Fleet(gangs, leaves, {GPU: total}, nodes, pace, rng.randint(0, 2), _in_waves(rng, gangs))


def families(rng: Random) -> Fleet:
    """Teams within teams, of two resources that are promised to different people, some of it not lent."""
    gpus = rng.randint(6, 16)
    left, leaves = {"cpu": CORES * gpus, GPU: gpus}, []
    tree = _teams(rng, left, dict(left), "", leaves, levels=rng.randint(0, 2))
    gangs = {}
    for job in range(1, rng.randint(6, 16)):
        asked = request(rng.randint(0, 3), cpu=1000 * rng.randint(0, 2 * CORES))
        fields = {"workers": rng.randint(0, 2), "priority": rng.randint(0, 2), "preemptible": rng.random() < 0.9}
        gangs[job] = _asking(f"g{job}", rng.choice(leaves), asked, job_id=job, after_s=rng.randint(0, 4), **fields)
    sizes = [[rng.randint(2, 8) for _ in range(rng.randint(1, 3))] for _ in range(rng.randint(1, 3))]
    nodes = [[node(size, cpu=1000 * CORES * size) for size in each] for each in sizes]
    pace = timedelta(seconds=rng.choice([1, 61]))
    return Fleet(gangs, tree, left, nodes, pace, rng.randint(0, 1), _in_waves(rng, gangs))


def _in_waves(rng: Random, gangs: dict[int, Gang]) -> dict[int, int]:
    """One queue after the other comes back from its holidays, and finds what it was promised in use."""
    first = {leaf: rng.choice([0, 3, 6]) for leaf in sorted({each.leaf for each in gangs.values()})}
    return {job: first[each.leaf] + rng.choice([0, 0, 1, 4]) for job, each in gangs.items()}


def _asking(name: str, leaf: str, asked: dict[str, int], *, workers: int, **fields) -> Gang:
    pods = 1 + workers
    total = {resource: pods * amount for resource, amount in asked.items()}
    return gang(name, leaf=f"root/{leaf}", roles=(("worker", pods, asked),), total=total, **fields)


def _teams(rng: Random, low: dict, top: dict, above: str, leaves: list[str], levels: int) -> list[dict]:
    made, left = [], dict(low)
    for i in range(rng.randint(2, 3)):
        own = {name: rng.choice([0, most // 2, most, rng.randint(0, most)]) for name, most in left.items()}
        left = {name: left[name] - own[name] for name in left}
        path, fields = f"{above}n{i}", {"preempt-policy": rng.choice(["PreemptLowerPriority", "Never"])}
        if rng.random() < 0.2:
            fields[LEND] = f'{{"{GPU}": {rng.randint(0, own[GPU])}}}'
        below = _teams(rng, own, top, f"{path}/", leaves, levels - 1) if levels and rng.random() < 0.4 else []
        if not below:
            leaves.append(path)
        made.append(quota(f"n{i}", own, top, *below, attributes=fields))
    return made
