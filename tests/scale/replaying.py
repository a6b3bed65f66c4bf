"""The Helios Venus trace on a virtual clock: the product's own scheduler and engine, nothing else decides.

What is bound is counted a second time, GPU by GPU, by a ledger that knows no engine: what the two disagree on is a mis-bind.
"""

import csv
import gzip
import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import numpy as np

from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.gang.requirements import GangRequirements, PodRequirements, RoleRequirements
from jobs.core.placement.engine import Engine
from jobs.core.placement.types import Assignment, Member, NodeFacts
from jobs.core.policies.propagation import PolicySpec
from jobs.core.policies.weights import Weights
from jobs.core.scheduling.backfill_reservation import Run, Runs
from jobs.core.scheduling.scheduler import Scheduler
from jobs.core.settings import CycleSettings
from tests.jobs.core.placement.cast import APIS, GPU, NOON, gang

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


def demand(gpus: int) -> GangRequirements:
    """Pods of 8 GPUs, and one with the rest."""
    parts = (RoleRequirements("worker", gpus // WHOLE, ask(WHOLE)), RoleRequirements("rest", 1, ask(gpus % WHOLE)))
    return GangRequirements(tuple(part for part in parts if part.replicas and part.ask.request))


def ask(gpus: int) -> PodRequirements:
    return PodRequirements.from_request({GPU: gpus})


@dataclass
class Yard:
    """The fleet on the virtual clock, and what runs on it."""

    sizes: Mapping[str, int]
    weights: Weights = field(default_factory=Weights)
    now: float = 0.0
    starts: dict[int, float] = field(default_factory=dict)
    running: dict[int, tuple[Job, list[tuple[str, str, int]]]] = field(default_factory=dict)
    """Job → it, and (cluster, node, GPUs)."""
    leaving: list[tuple[float, int]] = field(default_factory=list)
    used: dict[tuple[str, str], int] = field(default_factory=dict)
    """The ledger."""
    misbinds: int = 0

    def __post_init__(self) -> None:
        self.places = PlacementCache()
        self.places.engine = self.engine = Engine(self.weights)
        self.demands = {gpus: demand(gpus) for gpus in range(1, 8 * max(self.sizes.values()) + 1)}
        for index, (cluster, nodes) in enumerate(self.sizes.items()):
            self.places.set_cluster(index, Member(cluster, apis=APIS))
            for n in range(nodes):
                self.places.set_node(cluster, NodeFacts(f"n{n:03}", {GPU: WHOLE}))

    def start(self, job: Job, found: Assignment) -> None:
        self.running[job.id] = (job, self.count(found, job))
        self.starts[job.id] = self.now
        heapq.heappush(self.leaving, (self.now + job.lasts, job.id))

    def count(self, found: Assignment, job: Job) -> list[tuple[str, str, int]]:
        """Into the ledger, which does not believe the engine."""
        taken = [
            (found.cluster, name, load.each * dict(found.demand.parts[parts[0]].ask.request)[GPU])
            for parts, load in found.loads
            for name in load.names
        ]
        for cluster, name, gpus in taken:
            self.used[cluster, name] = self.used.get((cluster, name), 0) + gpus
        over = any(self.used[cluster, name] > WHOLE for cluster, name, _ in taken)
        self.misbinds += over or sum(gpus for _, _, gpus in taken) != job.gpus
        return taken

    def leave(self) -> list[Job]:
        """Those whose end has come."""
        gone = []
        while self.leaving and self.leaving[0][0] <= self.now:
            job, taken = self.running.pop(heapq.heappop(self.leaving)[1])
            for cluster, node, gpus in taken:
                self.used[cluster, node] -= gpus
            gone.append(job)
        return gone


@dataclass
class Cycle:
    """The product's own scheduler, told of who comes and who ends."""

    yard: Yard
    known: bool
    """Run times are declared; else they are guessed from what has ended."""
    settings: CycleSettings

    def __post_init__(self) -> None:
        self.scheduler, self.runs = Scheduler(places=self.yard.places, settings=self.settings), Runs()
        self.policy = PolicySpec()
        self.jobs: dict[int, Job] = {}

    def comes(self, job: Job) -> None:
        self.jobs[job.id] = job
        asked = self.yard.demands[job.gpus]
        self.scheduler.put(
            gang(
                job_id=job.id,
                name=f"{job.user}/{job.id:06}",
                roles=tuple((part.role, part.replicas, dict(part.ask.request)) for part in asked.parts),
                total=asked.total,
                queued_at=datetime.fromtimestamp(job.at, UTC),
                policy=self.policy,
                needs=asked,
                runtime_s=float(job.lasts) if self.known else None,
            )
        )

    def ended(self, job: Job) -> None:
        self.scheduler.places.release((job.id, 1))
        del self.runs.by_job[job.id]
        self.runs.estimates.learn(job.user, job.gpus, job.lasts)

    def turn(self) -> None:
        """One cycle, and more as long as there is more to decide."""
        now, more = self.yard.now, True
        while more:
            plan = self.scheduler.run(datetime.fromtimestamp(now, UTC), lambda: self.runs)
            for placed in plan.placed:
                job = self.jobs.pop(placed.gang.job_id)
                said = placed.gang.runtime_s
                self.runs.by_job[job.id] = Run(job.user, job.gpus, now, said, (job.id, 1), placed.placement.cluster)
                self.yard.start(job, placed.placement.assignment)
            more = plan.more


def fleet(
    jobs: Sequence[Job], sizes: Mapping[str, int], *, known: bool, tick: Tick, settings: CycleSettings = CycleSettings()
) -> Yard:
    """All clusters, one queue in the order of submission; run times known, or guessed from what has ended."""
    yard = Yard(sizes)
    cycle = Cycle(yard, known, settings)
    for _, arrived in moments(yard, jobs):
        for job in yard.leave():
            cycle.ended(job)
            tick()
        for job in arrived:
            cycle.comes(job)
        cycle.turn()
    return yard


def alone(jobs: Sequence[Job], nodes: int, key: Callable[[Job], int], tick: Tick) -> Yard:
    """One virtual cluster by itself: sorted by ``key``, from the head until the first that does not fit."""
    yard, asking = Yard({"home": nodes}), gang(policy=PolicySpec())
    queue: list[Job] = []
    for _, arrived in moments(yard, jobs):
        for job in yard.leave():
            yard.engine.release(job.id)
            tick()
        queue = sorted(queue + arrived, key=key)
        while queue and (found := yard.engine.find(asking, yard.demands[queue[0].gpus], NOON)) is not None:
            yard.engine.bind(queue[0].id, found)
            yard.start(queue.pop(0), found)
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
