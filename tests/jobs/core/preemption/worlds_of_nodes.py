"""Random fleets whose gangs stand on nodes, and what may go there, by counting the GPUs of nodes and queues alone."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import chain, combinations

from jobs.core.gang.types import AdmittedGang
from jobs.core.placement.types import NodeFacts
from jobs.core.preemption import lending, planner
from jobs.core.preemption.planner import PreemptionPlan
from jobs.core.scheduling.scheduler import Scheduler
from quotas.core.accounts.ledger import Charge
from tests.jobs.core.builders import GI, GPU, NOON, PLENTY, a_quota, cluster, gang, request, under
from tests.quotas.core.builders import quota

CLAIMANT, BIG = 100, 101
LEAVES = "abcde"
"""The claimant's first. The last borrows alone: that is where the big gang waits."""
Node = tuple[str, int]


@dataclass(frozen=True)
class Gang:
    job: int
    leaf: str
    priority: int
    nodes: tuple[Node, ...]
    """Of each pod."""
    gpus: int
    """Of one pod."""
    age_s: int

    @property
    def size(self) -> int:
        return self.gpus * len(self.nodes)


@dataclass(frozen=True)
class World:
    capacity: dict[Node, int]
    mins: dict[str, int]
    gangs: tuple[Gang, ...]
    pods: int
    gpus: int
    """Of one pod of the claimant."""
    by_priority: bool
    """Whether the claimant's queue preempts by priority."""
    big: int
    """GPUs of a borrowing gang that nodes are kept for; 0: none waits."""

    # the oracle

    def has_place(self, gone: Iterable[Gang] = ()) -> bool:
        """Whether the claimant fits into its quota, its min and one cluster when these are gone."""
        staying = set(self.gangs).difference(gone)
        free = Counter(self.capacity)
        for each in staying:
            free.subtract(dict.fromkeys(each.nodes, 0) | {n: each.gpus * k for n, k in Counter(each.nodes).items()})
        room: Counter[str] = Counter()
        for (name, _), amount in free.items():
            room[name] += amount // self.gpus
        own = sum(each.size for each in staying if each.leaf == "a") + self.pods * self.gpus
        others = any(each.leaf != "a" for each in gone)
        lower = any(each.leaf == "a" for each in gone)
        before = sum(each.size for each in self.gangs if each.leaf == "a")
        within = own <= self.mins["a"] if others else not lower or own <= max(before, self.mins["a"])
        return within and free.total() >= self.pods * self.gpus and max(room.values()) >= self.pods

    def may_go(self, gone: tuple[Gang, ...]) -> bool:
        """By right: lower priorities of the own queue if that states so, of others what is above their min when it goes."""
        for leaf in {each.leaf for each in gone}:
            going = [each.size for each in gone if each.leaf == leaf]
            if leaf == "a":
                if not self.by_priority or any(each.priority >= 1 for each in gone if each.leaf == "a"):
                    return False
            elif (
                sum(each.size for each in self.gangs if each.leaf == leaf) - sum(going) + max(going) <= self.mins[leaf]
            ):
                return False
        return True

    def choices(self) -> Iterator[tuple[Gang, ...]]:
        every = chain.from_iterable(combinations(self.gangs, n) for n in range(1, len(self.gangs) + 1))
        return (choice for choice in every if self.may_go(choice) and self.has_place(choice))

    # the engine

    def plan(self) -> PreemptionPlan:
        now = NOON + timedelta(hours=2)
        policy = {"preempt-policy": "PreemptLowerPriority" if self.by_priority else "Never"}
        most = {GPU: sum(self.capacity.values())}
        tree = [quota(leaf, {GPU: self.mins[leaf]}, most, attributes=policy if leaf == "a" else {}) for leaf in LEAVES]
        running = [self._admitted(each) for each in self.gangs]
        rules = a_quota(*tree, charges=[each.charge for each in running], total={**PLENTY, **most})
        waiting = [
            gang("claims", masters=0, workers=self.pods, gpus=self.gpus, priority=1, job_id=CLAIMANT, leaf="root/a")
        ]
        if self.big:
            waiting.append(gang("big", masters=0, workers=self.big // 8, gpus=8, job_id=BIG, leaf="root/e"))
        scheduler = Scheduler.from_snapshot(under(rules, waiting, self._sites()))
        plan, preemption = lending.withdraw_lent(
            scheduler,
            scheduler.run(now),
            lambda plan: planner.plan_preemption(scheduler, plan, lambda: running, now),
            now,
        )
        placed = [each.gang.job_id for each in plan.placed]
        assert CLAIMANT not in placed, "it fits as things stand"
        return preemption

    def _admitted(self, each: Gang) -> AdmittedGang:
        pod = request(each.gpus)
        total = {name: amount * len(each.nodes) for name, amount in pod.items()}
        started = NOON + timedelta(hours=2, seconds=-each.age_s)
        pods = tuple((f"{name}-{i}", pod) for name, i in each.nodes)
        charge = Charge(f"root/{each.leaf}", total)
        return AdmittedGang(
            each.job, f"g{each.job}", charge, each.priority, started, each.nodes[0][0], total, pods=pods
        )

    def _sites(self):
        used = {
            node: [each for each in self.gangs for of_pod in each.nodes if of_pod == node] for node in self.capacity
        }
        for name in sorted({name for name, _ in self.capacity}):
            facts = tuple(
                NodeFacts(
                    f"{name}-{node[1]}",
                    {"cpu": 640_000, "memory": 999 * GI, GPU: gpus, "pods": 110},
                    {GPU: sum(each.gpus for each in used[node]), "pods": len(used[node])},
                )
                for node, gpus in self.capacity.items()
                if node[0] == name
            )
            yield replace(cluster(name), nodes=facts)
