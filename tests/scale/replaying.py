"""The Helios Venus trace on a virtual clock: the product's own engine and drain, nothing else decides.

What is bound is counted a second time, GPU by GPU, by a ledger that knows no engine: what the two disagree on is a mis-bind.
"""

import csv
import gzip
import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np

from jobs.core import drain
from jobs.core.drain import Drain, Guesses, Waiting
from jobs.core.placing.asks import Ask, Demand, Part
from jobs.core.placing.engine import Engine
from jobs.core.placing.facts import Assignment, Member, NodeFacts
from jobs.core.placing.scoring import Weights
from jobs.core.policy import PolicySpec
from tests.jobs.core.placing.cast import APIS, GPU, NOON, gang

WHOLE = 8
Tick = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Job:
    id: int
    at: int
    lasts: int
    gpus: int
    home: str
    user: str

    @property
    def nodes(self) -> int:
        return -(-self.gpus // WHOLE)


def trace(folder: Path) -> list[Job]:
    """In the order of submission, equal ones as listed, which is their order inside each virtual cluster."""
    with gzip.open(folder / "jobs.csv.gz", "rt") as lines:
        rows = list(csv.DictReader(lines))
    jobs = (
        Job(int(r["job_id"]), int(r["submit_s"]), int(r["duration_s"]), int(r["gpu_num"]), r["vc"], r["user"])
        for r in sorted(rows, key=lambda row: int(row["seq"]))
    )
    return sorted(jobs, key=lambda job: job.at)


def homes(folder: Path) -> dict[str, int]:
    """Virtual cluster → nodes."""
    with (folder / "vc_config.csv").open() as lines:
        return {row["vc"]: int(row["nodes"]) for row in csv.DictReader(lines)}


def demand(gpus: int) -> Demand:
    """Pods of 8 GPUs, and one with the rest."""
    parts = (Part("worker", gpus // WHOLE, ask(WHOLE)), Part("rest", 1, ask(gpus % WHOLE)))
    return Demand(tuple(part for part in parts if part.replicas and part.ask.request))


def ask(gpus: int) -> Ask:
    return Ask.of({GPU: gpus})


@dataclass
class Yard:
    """The fleet on the virtual clock."""

    sizes: Mapping[str, int]
    lasts: Callable[[Job], float]
    weights: Weights = field(default_factory=Weights)
    now: float = 0.0
    waiting: dict[int, Job] = field(default_factory=dict)
    starts: dict[int, float] = field(default_factory=dict)
    running: dict[int, tuple[Job, float, str, list[tuple[str, int]]]] = field(default_factory=dict)
    """Job → it, its expected run time, its cluster, (node, GPUs)."""
    leaving: list[tuple[float, int]] = field(default_factory=list)
    used: dict[tuple[str, str], int] = field(default_factory=dict)
    """The ledger."""
    misbinds: int = 0

    def __post_init__(self) -> None:
        self.engine, self.gang = Engine(self.weights), gang(policy=PolicySpec())
        self.demands = {gpus: demand(gpus) for gpus in range(1, 8 * max(self.sizes.values()) + 1)}
        self.empty = {c: [f"n{n:03}" for n in range(nodes)] for c, nodes in self.sizes.items()}
        for cluster, nodes in self.empty.items():
            self.engine.set_cluster(Member(cluster, apis=APIS))
            for node in nodes:
                self.engine.set_node(cluster, NodeFacts(node, {GPU: WHOLE}))

    def place(self, job: Waiting) -> bool:
        return self.put(self.waiting[int(str(job.name))])

    def put(self, job: Job) -> bool:
        if job.gpus not in self.demands:
            return False
        found = self.engine.find(self.gang, self.demands[job.gpus], NOON)
        if found is None:
            return False
        self.engine.bind(job.id, found)
        taken = self.count(found, job)
        self.running[job.id] = (job, self.lasts(job), found.cluster, taken)
        self.starts[job.id] = self.now
        heapq.heappush(self.leaving, (self.now + job.lasts, job.id))
        return True

    def count(self, found: Assignment, job: Job) -> list[tuple[str, int]]:
        """Into the ledger, which does not believe the engine."""
        taken = [
            (name, load.each * dict(found.demand.parts[parts[0]].ask.request)[GPU])
            for parts, load in found.loads
            for name in load.names
        ]
        for name, gpus in taken:
            self.used[found.cluster, name] = self.used.get((found.cluster, name), 0) + gpus
        over = any(self.used[found.cluster, name] > WHOLE for name, _ in taken)
        self.misbinds += over or sum(gpus for _, gpus in taken) != job.gpus
        return taken

    def leave(self) -> list[Job]:
        """Those whose end has come."""
        gone = []
        while self.leaving and self.leaving[0][0] <= self.now:
            _, name = heapq.heappop(self.leaving)
            job, _, cluster, taken = self.running.pop(name)
            self.engine.release(name)
            for node, gpus in taken:
                self.used[cluster, node] -= gpus
            gone.append(job)
        return gone

    def whole_at(self) -> Mapping[str, Mapping[str, float]]:
        at = {cluster: dict.fromkeys(nodes, self.now) for cluster, nodes in self.empty.items()}
        for name, (_, lasts, cluster, taken) in self.running.items():
            end, nodes = drain.ends(self.starts[name], lasts, self.now), at[cluster]
            for node, _ in taken:
                nodes[node] = max(nodes[node], end)
        return at

    def keep(self, kept: Drain) -> None:
        self.kept = kept
        self._tell(usable=False)

    def unkeep(self) -> None:
        self._tell(usable=True)

    def _tell(self, *, usable: bool) -> None:
        for node in self.kept.nodes:
            self.engine.set_node(self.kept.cluster, NodeFacts(node, {GPU: WHOLE}, usable=usable))


def fleet(jobs: Sequence[Job], sizes: Mapping[str, int], *, known: bool, drains: bool, tick: Tick) -> Yard:
    """All clusters, one queue in the order of submission; run times known, or guessed from what has ended."""
    guesses = Guesses()
    yard = Yard(sizes, lambda job: float(job.lasts) if known else guesses.of(job.user, job.gpus))
    queue: list[Job] = []
    for now, arrived in moments(yard, jobs):
        for job in yard.leave():
            guesses.learn(job.user, job.gpus, job.lasts)
            tick()
        queue += arrived
        yard.waiting = {job.id: job for job in queue}
        offers = [Waiting(job.id, job.gpus, job.nodes if drains else 1, yard.lasts(job)) for job in queue]
        drain.turn(offers, yard, now)
        queue = [job for job in queue if job.id not in yard.starts]
    return yard


def alone(jobs: Sequence[Job], nodes: int, key: Callable[[Job], int], tick: Tick) -> Yard:
    """One virtual cluster by itself: sorted by ``key``, from the head until the first that does not fit."""
    yard = Yard({"home": nodes}, lambda job: 0.0)
    queue: list[Job] = []
    for _, arrived in moments(yard, jobs):
        for _ in yard.leave():
            tick()
        queue = sorted(queue + arrived, key=key)
        while queue and yard.put(queue[0]):
            queue.pop(0)
    return yard


def moments(yard: Yard, jobs: Sequence[Job]) -> Iterator[tuple[float, list[Job]]]:
    """Every time something ends or comes, with who comes; the clock of the yard is set to it."""
    coming = [(at, list(group)) for at, group in groupby(jobs, key=lambda job: job.at)]
    coming.reverse()
    while coming or yard.leaving:
        yard.now = min([at for at, _ in coming[-1:]] + [end for end, _ in yard.leaving[:1]])
        yield yard.now, coming.pop()[1] if coming and coming[-1][0] == yard.now else []


def delays(jobs: Sequence[Job], starts: Mapping[int, float]) -> dict[str, float]:
    waited = np.array([starts[job.id] - job.at for job in jobs])
    big = np.array([job.nodes > 1 for job in jobs])
    return {
        "avg_queue_s": round(float(waited.mean()), 1),
        "p999_queue_s": round(float(np.percentile(waited, 99.9))),
        "avg_queue_big_s": round(float(waited[big].mean()), 1),
        "avg_jct_s": round(float((waited + [job.lasts for job in jobs]).mean()), 1),
        "waited": int((waited > 0).sum()),
    }
