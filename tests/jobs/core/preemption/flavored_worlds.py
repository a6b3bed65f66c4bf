"""Random fleets of two GPU models, played cycle after cycle; the judge counts GPUs of nodes and knows no charge."""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random

from jobs.core.gang.types import AdmittedGang, CapacityHold, Gang
from jobs.core.preemption import lending, planner
from jobs.core.scheduling.scheduler import Scheduler
from tests.jobs.core.builders import GPU, NOON, under
from tests.jobs.core.flavored import MODELS, job, limits, rules, site
from tests.quotas.core.builders import quota

Node = tuple[int, int, int]
"""(of all models, of h100, of a100)"""


@dataclass
class Queue:
    path: str
    low: Node
    high: Node
    order: tuple[str, ...]


@dataclass
class World:
    rng: Random
    by_flavor: bool = True
    """Whether mins are stated for each flavor; else for the plain name."""
    queues: list[Queue] = field(default_factory=list)
    teams: dict[str, tuple[Node, Node]] = field(default_factory=dict)
    tree: list[dict] = field(default_factory=list)
    sites: dict[str, dict[str, int]] = field(default_factory=dict)
    """Of each cluster how many nodes of each model."""
    size: int = 4
    """GPUs of a node."""
    gangs: dict[int, Gang] = field(default_factory=dict)
    running: dict[int, tuple[AdmittedGang, CapacityHold, str]] = field(default_factory=dict)
    """With the model of its nodes."""
    waiting: set[int] = field(default_factory=set)
    evicted: dict[int, AdmittedGang] = field(default_factory=dict)
    comes: dict[int, int] = field(default_factory=dict)
    """In which wave a job is submitted: some queues find what they were promised in use."""
    promised: int = 0
    cap: int = 0
    """GPUs of all models that the root has: fewer than there are, where mins are not stated by flavor."""
    cycles: int = 0
    stops: list[tuple[str, str]] = field(default_factory=list)
    """(model the preemptor is to have, model of the victim's nodes)."""

    def total(self, model: str) -> int:
        return self.size * sum(nodes[model] for nodes in self.sites.values())

    def quota(self):
        whole = {model: min(self.total(model), self.cap) for model in MODELS}
        charges = [gang.charge for gang, *_ in self.running.values()]
        return rules(*self.tree, total=limits(self.cap, **whole), charges=charges)

    def step(self) -> bool:
        """One cycle; whether it changed anything."""
        self.cycles += 1
        now = NOON + timedelta(seconds=7 * self.cycles)
        holds = [hold for _, hold, _ in self.running.values()]
        sites = [
            site(name, gpus=self.size, holds=[hold for hold in holds if hold.cluster == name], **nodes)
            for name, nodes in self.sites.items()
        ]
        waiting = [self.gangs[number] for number in sorted(self.waiting)]
        scheduler = Scheduler.from_snapshot(under(self.quota(), waiting, sites, (), self.evicted.values()))
        runners = [gang for gang, *_ in self.running.values()]

        def preempt(plan):
            return planner.plan_preemption(scheduler, plan, lambda: runners, now)

        plan, preemption = lending.withdraw_lent(scheduler, scheduler.run(now), preempt, now)
        for placed in plan.placed:
            self._start(placed, now)
        for eviction in preemption.evictions:
            self._stop(eviction, now)
        return bool(plan.placed or preemption.evictions)

    def _start(self, placed, now) -> None:
        gang = placed.gang
        hold = placed.placement.hold(("run", gang.job_id))
        models = {node.split("-")[1] for _, nodes in hold.nodes for node in nodes}
        assert len(models) == 1, f"{gang.name} is on nodes of {models}"
        admitted = AdmittedGang(
            gang.job_id, gang.name, gang.charge, gang.priority, now, hold.cluster, gang.total,
            hold_key=hold.key, admitted_at=now,
        )  # fmt: skip
        self.running[gang.job_id] = admitted, hold, models.pop()
        self.waiting.discard(gang.job_id)
        self.evicted.pop(gang.job_id, None)

    def _stop(self, eviction, now) -> None:
        number = eviction.target.job_id
        gang, _, model = self.running.pop(number)
        ((wanted, _),) = eviction.preemptor.flavors
        self.stops.append((wanted.partition(":")[2], model))
        self.waiting.add(number)
        order = {"leaves_for": eviction.preemptor.job_id, "goes_to": eviction.goes_to, "ordered_at": now, "until": now}
        self.evicted[number] = replace(gang, cluster="", hold_key=None, **order)

    # the judge

    def used(self, path: str) -> Counter[str]:
        """GPUs by the model of the nodes, of all below a path."""
        used: Counter[str] = Counter()
        for number, (_, hold, model) in self.running.items():
            leaf = self.gangs[number].leaf
            if leaf == path or leaf.startswith(f"{path}/"):
                used[model] += sum(amounts[GPU] * len(nodes) for amounts, nodes in hold.nodes)
        return used

    def check(self) -> None:
        """Nothing is above a max, by the nodes that jobs have, and no node has more than it holds."""
        limits_ = {queue.path: queue.high for queue in self.queues} | {t: high for t, (_, high) in self.teams.items()}
        for path, high in limits_.items():
            used = self.used(path)
            assert used.total() <= high[0], (path, used, high)
            for model, most in zip(MODELS, high[1:], strict=True):
                assert used[model] <= most, (path, used, high)
        taken: Counter[str] = Counter()
        for _, hold, _ in self.running.values():
            for amounts, nodes in hold.nodes:
                taken.update({node: amounts[GPU] for node in nodes})
        assert all(amount <= self.size for amount in taken.values()), taken

    def denied(self) -> list[str]:
        """Waiting jobs that are within the min of their queue on a model they may use, although it can be had."""
        denied = []
        for number in sorted(self.waiting):
            gang = self.gangs[number]
            queue = next(queue for queue in self.queues if queue.path == gang.leaf)
            used, asked = self.used(queue.path), gang.total[GPU]
            if used.total() + asked > queue.high[0]:
                continue  # the queue itself uses what it may have
            promised = self._promised_models(queue, used, asked)
            if any(used[model] + asked <= queue.high[1 + MODELS.index(model)] for model in promised):
                denied.append(gang.name)
        return denied

    def _promised_models(self, queue: Queue, used: Counter[str], asked: int) -> list[str]:
        if self.by_flavor:
            low = dict(zip(MODELS, queue.low[1:], strict=True))
            return [model for model in queue.order if used[model] + asked <= low[model]]
        if used.total() + asked > queue.low[0] or set(queue.order) != set(MODELS):
            return []  # a min of all models is a promise of some model, not of the one that a queue insists on
        others, most = [other for other in self.queues if other is not queue], self.used("root").total()
        promised = []
        for model in queue.order:
            kept = used[model] + sum(self._keeps(other, model) for other in others)
            given = self.used("root")[model] - kept
            if kept + asked <= self.total(model) and most - given + asked <= self.cap:
                promised.append(model)
        return promised

    def _keeps(self, queue: Queue, model: str) -> int:
        """The GPUs of a model that a queue need not give back, as long as it and its team are within their min of all."""
        team = self.teams.get(queue.path.rpartition("/")[0])
        over = [self.used(queue.path).total() - queue.low[0]]
        over += [self.used(queue.path.rpartition("/")[0]).total() - team[0][0]] if team else []
        used = self.used(queue.path)[model]
        return used - max(min(used, *over), 0)


def random_world(rng: Random) -> World:
    """Gangs that any node of a model may hold, so that only quotas decide; or gangs of several pods, one cluster a model."""
    world = World(rng, by_flavor=rng.random() < 0.75)
    gangs = rng.random() < 0.4
    if gangs:
        world.sites = {"c0": {"h100": rng.randint(1, 3), "a100": 0}, "c1": {"h100": 0, "a100": rng.randint(1, 3)}}
    else:
        world.sites = {f"c{i}": {model: rng.randint(0, 2) for model in MODELS} for i in range(3)}
        world.sites["c0"] = {model: 1 + nodes for model, nodes in world.sites["c0"].items()}
    _grow(world)
    capacity, size = sum(map(world.total, MODELS)), 3 if gangs else 1
    first = {queue.path: rng.choice([0, 0, 1, 2]) for queue in world.queues}
    for number in range(1, 3 + int(rng.uniform(0.7, 1.8) * capacity / size)):
        queue = rng.choice(world.queues)
        pods = rng.randint(1, 5) if gangs else 1
        fields = {"job_id": number, "priority": rng.randint(0, 1), "after_s": rng.randint(0, 5)}
        world.gangs[number] = job(f"g{number}", queue.path.removeprefix("root/"), 1, pods=pods, **fields)
        world.comes[number] = first[queue.path] + rng.choice([0, 0, 0, 1])
    return world


def _grow(world: World) -> None:
    """Two to four queues, some of them below a team; what is promised of a model is there."""
    rng, whole = world.rng, {model: world.total(model) for model in MODELS}
    world.cap = sum(whole.values())
    if not world.by_flavor:
        world.cap = rng.randint(world.cap // 2, world.cap)
        whole = {model: min(amount, world.cap) for model, amount in whole.items()}
    left = dict(whole)
    for name in ("a", "b", "c", "d")[: rng.randint(2, 4)]:
        below = [_queue(world, f"root/{name}/{sub}", left, whole) for sub in "xy"] if rng.random() < 0.3 else []
        if not below:
            queue = _queue(world, f"root/{name}", left, whole)
            world.queues.append(queue)
            world.tree.append(_manifest(world, queue))
            continue
        low = tuple(map(sum, zip(*(queue.low for queue in below), strict=True)))
        high = (world.cap, *whole.values())
        world.queues += below
        world.teams[f"root/{name}"] = low, high
        children = [_manifest(world, queue) for queue in below]
        world.tree.append(quota(name, _amounts(world, low), limits(high[0], h100=high[1], a100=high[2]), *children))


def _queue(world: World, path: str, left: dict[str, int], whole: dict[str, int]) -> Queue:
    rng = world.rng
    own = {model: rng.choice([0, most // 2, most, rng.randint(0, most)]) for model, most in left.items()}
    if not world.by_flavor:  # of all models together no more than the root has
        own["a100"] = min(own["a100"], sum(left.values()) - own["h100"], world.cap - world.promised - own["h100"])
        own["a100"] = max(own["a100"], 0)
        own["h100"] = min(own["h100"], world.cap - world.promised)
    for model, amount in own.items():
        left[model] -= amount
    world.promised += sum(own.values())
    order = tuple(rng.sample(MODELS, rng.choice([1, 2, 2])))
    if not world.by_flavor:
        high = tuple(whole.values())
    else:
        high = tuple(rng.randint(own[model], most) for model, most in whole.items())
    top = world.cap if not world.by_flavor or rng.random() < 0.5 else max(sum(own.values()), *high)
    return Queue(path, (sum(own.values()), *own.values()), (top, *high), order)


def _amounts(world: World, low: tuple[int, ...]) -> dict[str, int]:
    return limits(low[0], h100=low[1], a100=low[2]) if world.by_flavor else {GPU: low[0]}


def _manifest(world: World, queue: Queue) -> dict:
    rng = world.rng
    attributes = {
        "flavor-order": ",".join(queue.order),
        "when-can-borrow": rng.choice(["MayStopSearch", "TryNextFlavor"]),
        "when-can-preempt": rng.choice(["MayStopSearch", "TryNextFlavor"]),
        "weight": rng.choice(["1", "2", "0.5"]),
    }
    top = limits(queue.high[0], h100=queue.high[1], a100=queue.high[2])
    return quota(queue.path.rpartition("/")[2], _amounts(world, queue.low), top, attributes=attributes)
