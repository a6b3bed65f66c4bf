"""A fleet in virtual time: one scheduler kept over hours, jobs that end, evictions with their grace; every start and kill."""

import heapq
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from random import Random

from jobs.core.admission.plans import Plan
from jobs.core.admission.snapshot import Quota
from jobs.core.gang.types import AdmittedGang, Gang
from jobs.core.preemption import lending, planner
from jobs.core.scheduling.backfill_reservation import Run, Runs
from jobs.core.scheduling.scheduler import Scheduler
from quotas.core.queues.recent_use import RecentUse
from tests.jobs.core.builders import GPU, NOON, PLENTY, a_quota, cluster, gang, node, under
from tests.quotas.core.builders import quota

GPUS = 8
"""Of a node."""
WEEK = 7 * 86400.0
TICK = 60.0
"""Seconds between two cycles that no event asks for."""


@dataclass(frozen=True)
class Kill:
    job: int
    ran: float
    """Seconds since it started."""
    preemptor: int
    at: float
    surprised: bool
    """Nothing has happened since it started."""


@dataclass
class VirtualFleet:
    quota: Quota
    nodes: list[int]
    """Of each cluster, how many nodes it has."""
    grace: float = 30.0
    now: float = 0.0
    starts: list[tuple[float, int]] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    gpu_hours: dict[str, dict[int, float]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    """By leaf and hour, what its jobs had."""
    running: dict[int, AdmittedGang] = field(default_factory=dict)
    waiting: dict[int, Gang] = field(default_factory=dict)
    cycles: int = 0
    claims: list[tuple[int, int]] = field(default_factory=list)
    """(preemptor, target) of those stopped between queues that borrow."""
    kept_for: set[int] = field(default_factory=set)
    """Big gangs that nodes were kept for at some time."""

    def __post_init__(self) -> None:
        sites = [cluster(f"c{i}", [node(GPUS)] * many) for i, many in enumerate(self.nodes)]
        self.scheduler = Scheduler.from_snapshot(under(self.quota, [], sites))
        self.runs = Runs(share_half_life=WEEK, shares=RecentUse(WEEK, 10**6))
        self.gangs: dict[int, Gang] = {}
        self._lasting: dict[int, float] = {}
        self._started: dict[int, float] = {}
        self._events: list[tuple[float, int, str, object]] = []
        self._order = count()
        self._last_event = 0.0

    @classmethod
    def of(cls, gpus: int, *leaves: dict, clusters: int = 1, **of_root: str) -> "VirtualFleet":
        """So many GPUs in nodes of 8, under a tree that has all of them."""
        return cls(a_quota(*leaves, total={**PLENTY, GPU: gpus}, **of_root), [gpus // GPUS // clusters] * clusters)

    @property
    def time(self) -> datetime:
        return NOON + timedelta(seconds=self.now)

    def submit(self, job: int, leaf: str, pods: int, gpus: int, lasts: float, *, at: float = 0.0, **fields) -> None:
        """It comes ``at`` seconds after the beginning, and runs so many seconds once it starts."""
        known = lasts if fields.pop("declared", False) else None
        gang_ = gang(
            f"j{job:04}", masters=0, workers=pods, gpus=gpus, job_id=job, leaf=f"root/{leaf}" if leaf else "",
            after_s=int(at), runtime_s=known, **fields,
        )  # fmt: skip
        self.gangs[job], self._lasting[job] = gang_, lasts
        self._push(at, "comes", job)

    def play(self, until: float, tick: float = TICK) -> None:
        next_tick = self.now
        while True:
            at = min(self._events[0][0] if self._events else until, next_tick, until)
            self._pass_time(at)
            if at >= until:
                return
            while self._events and self._events[0][0] <= at:
                _, _, what, job = heapq.heappop(self._events)
                getattr(self, f"_{what}")(job)
                self._last_event = self.now
            next_tick = at + tick
            self.rest()

    def rest(self) -> None:
        """Cycles until there is nothing more to decide; and two more, a second later each, with no event between."""
        cycles = count()
        while self.cycle():
            assert next(cycles) < 100, "its cycles never come to rest"
        for _ in range(2):
            self.now += 0.001
            self.cycle()

    def cycle(self) -> bool:
        """Whether the next one is to come at once."""
        self.cycles += 1
        runners = list(self.running.values())

        def preempt(plan: Plan) -> planner.PreemptionPlan:
            for _ in range(2):  # by what is known, and by what is read anew
                orders = planner.plan_preemption(self.scheduler, plan, lambda: runners, self.time)
            self.scheduler.mark_no_targets(orders.no_targets)
            return orders

        plan = self.scheduler.run(self.time, lambda: self.runs)
        if self.scheduler.places.reservation:
            self.kept_for.add(self.scheduler.places.reservation.gang.job_id)
        plan, orders = lending.withdraw_lent(self.scheduler, plan, preempt, self.time, lambda: self.runs)
        for placed in plan.placed:
            self._start(placed)
        self.scheduler.started([placed.gang.job_id for placed in plan.placed])
        for taken in orders.evictions:
            self._evict(taken)
        return plan.more or orders.again

    def first_start(self, leaf: str) -> float:
        return next(at for at, job in self.starts if self.gangs[job].leaf == f"root/{leaf}")

    def short_kills(self, ran: float = 1.0) -> list[Kill]:
        return [kill for kill in self.kills if kill.ran <= ran]

    def _pass_time(self, at: float) -> None:
        while self.now < at:
            hour = int(self.now // 3600)
            step = min(at, (hour + 1) * 3600.0) - self.now
            for runner in self.running.values():
                leaf = runner.charge.leaf
                self.gpu_hours[leaf][hour] += step / 3600 * runner.total.get(GPU, 0)
            self.now += step

    def _comes(self, job: int) -> None:
        self.waiting[job] = self.gangs[job]
        self.scheduler.put(self.gangs[job])

    def _start(self, placed) -> None:
        job, gang_ = placed.gang.job_id, self.waiting.pop(placed.gang.job_id)
        key = (gang_.job_id, gang_.attempt + 1)
        self.running[job] = AdmittedGang(
            job, gang_.name, gang_.charge, gang_.priority, self.time, placed.placement.cluster, gang_.total,
            attempt=gang_.attempt + 1, hold_key=key, admitted_at=self.time,
        )  # fmt: skip
        since = self.time.timestamp()
        self.runs.by_job[job] = Run(
            gang_.leaf,
            gang_.devices,
            since,
            gang_.runtime_s,
            key,
            placed.placement.cluster,
            leaf=gang_.leaf,
            user=gang_.user,
        )
        self.runs.open_attempts[key] = ((gang_.leaf, gang_.user), gang_.devices, since)
        self.gangs[job] = replace(gang_, attempt=gang_.attempt + 1, stopped_for=0)
        self.starts.append((self.now, job))
        self._started[job] = self.now
        self._push(self.now + self._lasting[job], "ends", (job, gang_.attempt + 1))

    def _ends(self, run: tuple[int, int]) -> None:
        job, attempt = run
        runner = self.running.get(job)
        if runner is None or runner.attempt != attempt:
            return
        del self.running[job]
        self._vacate(runner)
        gang_, until = self.gangs[job], self.time.timestamp()
        self.runs.estimates.learn(gang_.leaf, gang_.devices, self._lasting[job])
        self.runs.used.ended(job, gang_.leaf, gang_.devices, until - self._lasting[job], until)

    def _evict(self, taken: planner.Eviction) -> None:
        runner = self.running.pop(taken.target.job_id)
        until = self.time + timedelta(seconds=self.grace)
        order = {
            "leaves_for": taken.preemptor.job_id,
            "goes_to": taken.goes_to,
            "ordered_at": self.time,
            "until": until,
        }
        self.scheduler.evicting[runner.job_id] = replace(runner, **order)
        started = self._started[runner.job_id]
        surprised = self._last_event <= started
        self.kills.append(Kill(runner.job_id, self.now - started, taken.preemptor.job_id, self.now, surprised))
        self._push(self.now + self.grace, "leaves", runner.job_id)
        self.gangs[runner.job_id] = replace(self.gangs[runner.job_id], stopped_for=taken.preemptor.job_id)
        if taken.victim.is_for_borrowing:
            self.claims.append((taken.preemptor.job_id, runner.job_id))
            self._has_claimed(taken.preemptor.job_id)

    def _has_claimed(self, job: int) -> None:
        self.gangs[job] = replace(self.gangs[job], has_claimed=True)
        if job in self.waiting:
            self._comes(job)

    def _leaves(self, job: int) -> None:
        runner = self.scheduler.evicting.pop(job)
        self._vacate(runner)
        self.scheduler.evicted[job] = replace(runner, cluster="", hold_key=None, until=self.time)
        self._comes(job)

    def _vacate(self, runner: AdmittedGang) -> None:
        if (attempt := self.runs.open_attempts.pop(runner.hold_key, None)) is not None:
            self.runs.shares.ended(runner.hold_key, *attempt, self.time.timestamp())
        self.runs.by_job.pop(runner.job_id, None)
        self.scheduler.places.release(runner.hold_key)
        self.scheduler.release(runner.job_id)

    def _push(self, at: float, what: str, about: object) -> None:
        heapq.heappush(self._events, (at, next(self._order), what, about))


def random_fleet(seed: int, **of_root: str) -> VirtualFleet:
    """Queues with mins and teams within teams, gangs up to the whole fleet, all of them coming in the first two hours."""
    rng = Random(seed)
    nodes, clusters = rng.choice([(4, 1), (6, 1), (8, 1), (8, 2), (12, 1), (12, 2)])
    gpus = nodes * GPUS
    tree, leaves = _random_tree(rng, gpus)
    fleet = VirtualFleet.of(gpus, *tree, clusters=clusters, **of_root)
    fleet.grace = rng.choice([0.0, 30.0, 120.0])
    half, quarter = nodes // 2, nodes // 4
    shapes = [(1, 1), (1, 2), (1, 4), (1, 8), (1, 8), (2, 8), (half, 8), (half, 8), (quarter, 8), (nodes, 8)]
    for job in range(1, rng.randint(15, 45)):
        fields = {"priority": rng.choice([0, 0, 0, 1, 2]), "declared": rng.random() < 0.3}
        lasts = rng.choice([300, 1200, 3600, 7200]) * rng.uniform(0.5, 1.5)
        at = rng.choice([0, rng.randint(0, 7200)])
        fleet.submit(job, rng.choice(leaves), *rng.choice(shapes), lasts, at=at, **fields)
    return fleet


def _random_tree(rng: Random, gpus: int) -> tuple[list[dict], list[str]]:
    left, tree, leaves = gpus, [], []
    for name in "abcd"[: rng.choice([2, 3, 3, 4])]:
        low = rng.choice([0, left // 2, left // 16 * 8, rng.randint(0, left)])
        left -= low
        limits = {GPU: low}, {GPU: rng.choice([gpus, gpus, max(low, gpus // 2)])}
        policies = {"preempt-policy": rng.choice(["Never", "Never", "PreemptLowerPriority"])}
        policies["queue-policy"] = rng.choice(["Priority"] * 4 + ["Block"])
        if rng.random() < 0.2:
            mins = [rng.choice([0, 0, low // 2]) for _ in range(2)]
            below = [quota(f"{name}{i}", {GPU: own}, limits[1], attributes=policies) for i, own in enumerate(mins)]
            tree.append(quota(name, *limits, *below))
            leaves += [f"{name}/{name}{i}" for i in range(2)]
        else:
            tree.append(quota(name, *limits, attributes=policies))
            leaves.append(name)
    return tree, leaves
