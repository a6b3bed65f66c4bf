"""A random fleet that lives in rows and is moved by the services alone; and an oracle that judges its rows by arithmetic.

The oracle shares no code with the engine: it reads jobs and holds, adds up GPUs, and tries every choice of borrowers.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations, product
from random import Random

import yaml
from django.utils import timezone

from fleet.models import Cluster, Hold
from jobs.models import Job, Work
from jobs.services.lifecycle import cycle_requests
from jobs.services.scheduling import loop
from jobs.services.submission import manifests, submit
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import APIS, GPU
from tests.support.world import POLICY, pytorch_job

LABEL = "quota.scheduling.alibabacloud.com/"
PLENTY = {"cpu": 10**6, "memory": "900000Gi", "kube-queue/max-jobs": 1000}
PAUSES = (1, 61, 400, 4000)
"""Seconds between two events: within and beyond each patience of the scheduler (a nomination's 60, a big gang's 300, ...)."""
TRIED = 9
"""Borrowers of one queue, the largest, of which every choice is tried."""
HOLDING = (*Job.ON_MEMBER, Job.State.RECLAIMING)


@dataclass(frozen=True)
class Row:
    """A job as the oracle reads it."""

    name: str
    leaf: str
    state: str
    gpus: int
    pods: int
    firm: bool
    charged: bool
    place: tuple[int, datetime]
    """In its queue: smaller comes first."""
    admitted_at: datetime | None
    reason: str

    @property
    def each(self) -> int:
        return self.gpus // self.pods


class ServedFleet:
    def __init__(
        self, seed: int, runtimes: tuple[int, ...] = (0,), fair_share: str = "Now", reclaim: str = "Min"
    ) -> None:
        """``runtimes``: seconds of the min-runtime of each queue, by chance."""
        self.rng, self.now, self.many = Random(seed), timezone.now(), 0
        self.nodes = self.make_nodes()
        self.total = sum(map(sum, self.nodes))
        self.low, self.high = self._limits()
        self.runtime = {name: timedelta(seconds=Random(seed + i).choice(runtimes)) for i, name in enumerate(self.low)}
        for i, sizes in enumerate(self.nodes):
            fields = {"state_since": self.now, "joined_at": self.now, "synced_at": self.now}
            row = Cluster.objects.create(name=f"c{i}", access={}, state=Cluster.State.READY, apis=APIS, **fields)
            for number, gpus in enumerate(sizes):
                offered = {"cpu": 10**6, "memory": 2**50, GPU: gpus, "pods": 1000}
                row.nodes.create(name=f"c{i}-{number}", ready=True, allocatable=offered)
        whole = {**PLENTY, GPU: self.total}
        leaves = [self._leaf(name) for name in self.low]
        shares = {"fair-share": fair_share, "reclaim": reclaim}
        trees.apply(manifest(quota("root", whole, whole, *leaves, attributes=shares)), by="system", now=self.now)
        self.big = self.rng.choice(["", *self.low])
        """A queue of big gangs, for which nodes are reserved when they have waited long."""
        self._submit(self.rng.choice(list(self.low)), many=self.total // 4)
        self.rest()

    def make_nodes(self) -> list[list[int]]:
        return [[8] * self.rng.randint(2, 4) for _ in range(self.rng.randint(1, 2))]

    def _limits(self) -> tuple[dict[str, int], dict[str, int]]:
        left, low, high = self.total, {}, {}
        for name in "abc"[: self.rng.randint(2, 3)]:
            low[name] = self.rng.choice([0, left // 2, left, self.rng.randint(0, left)])
            high[name] = self.rng.choice([self.total, self.total, max(low[name], self.total // 2)])
            left -= low[name]
        return low, high

    def _leaf(self, name: str) -> dict:
        policy = self.rng.choice(["Never", "PreemptLowerPriority"])
        attributes = {"preempt-policy": policy, "weight": self.rng.choice(["1", "2", "0.5"]), **self.settings_of(name)}
        if self.runtime[name]:
            attributes["min-runtime"] = f"{self.runtime[name].seconds}s"
        return quota(name, {GPU: self.low[name]}, {GPU: self.high[name]}, attributes=attributes)

    def settings_of(self, name: str) -> dict[str, str]:
        """Of a queue, beside those of all fleets."""
        return {}

    # what happens

    def step(self) -> None:
        """One event, or a pause; and the cycles that it leads to."""
        deeds = [self._come, self._come, self._end, self._end, self._leave, self._leave, self._pause, self._pause]
        self.rng.choice(deeds)()
        self.rest()

    def _pause(self) -> None:
        self.now += timedelta(seconds=self.rng.choice(PAUSES))

    def _come(self) -> None:
        """Several queues at once: who is promised a place and who would borrow it are offered it in one cycle."""
        for leaf in self.rng.sample(list(self.low), self.rng.randint(1, len(self.low))):
            self._submit(leaf, many=self.rng.choice([1, 1, 2, 4]))

    def _submit(self, leaf: str, many: int) -> None:
        """So many jobs of one queue, the half of them alike."""
        texts, size = [], self.size(leaf)
        for _ in range(many):
            size = size if self.rng.random() < 0.5 else self.size(leaf)
            texts.append(self.make_job(leaf, self.rng.choice([0, 0, 0, 5]), self.rng.random() < 0.1, size))
        by = Random(self.many).choice(["ada", "grace", "test"])
        submit.apply(manifests.parse("\n---\n".join((POLICY, *texts)).encode()), by=by, now=self.now)

    def size(self, leaf: str) -> dict[str, int]:
        if leaf == self.big:
            return {"workers": self.rng.choice([1, 2, 3]), "gpus": 8}
        return {"workers": self.rng.choice([0, 0, 1, 2, 3]), "gpus": self.rng.choice([1, 2, 4, 8, 8])}

    def make_job(self, leaf: str, priority: int, firm: bool, size: dict[str, int]) -> str:
        self.many += 1
        body = yaml.safe_load(pytorch_job(f"j{self.many}-{leaf}", **size))
        labels = {f"{LABEL}name": leaf, **({f"{LABEL}preemptible": "false"} if firm else {})}
        body["metadata"] |= {"labels": labels, "annotations": {"convoy.dev/priority": str(priority)}}
        return yaml.safe_dump(body)

    def _end(self) -> None:
        running = [row.name for row in rows() if row.state == Job.State.RUNNING]
        if running:
            books.report(self.rng.choice(running), "Succeeded", now=self.now)

    def _leave(self) -> None:
        """Of some jobs that are being evicted the pods are gone."""
        for row in [row for row in rows() if row.state == Job.State.RECLAIMING]:
            if self.rng.random() < 0.8:
                Work.objects.filter(job_uid=books.job(row.name).uid).update(state=Work.State.SUSPENDED)
                loop.advance_evictions(self.now)
                books.gone(row.name)
                loop.advance_evictions(self.now)

    def rest(self) -> None:
        """Cycles a second apart with no event between, judged one by one; then what was placed runs."""
        fresh: set[str] = set()
        for _ in range(3):
            before = {row.name: row for row in rows() if row.state in HOLDING}
            self.cycle()
            now = rows()
            stopped = {row.name for row in now if row.state == Job.State.RECLAIMING}
            assert not stopped & fresh, f"placed and ordered to leave with no event between: {stopped & fresh}"
            fresh |= {row.name for row in now if row.state in HOLDING} - before.keys()
            self.judge_evictions([before[name] for name in stopped if before[name].state != Job.State.RECLAIMING])
            self.judge(now)
            self.now += timedelta(seconds=1)
        self.judge_promises(rows())
        for row in rows():
            if row.state == Job.State.PLACED:
                books.report(row.name, "Running", now=self.now)

    def cycle(self) -> None:
        cycle_requests.request()
        loop.run(lambda: self.now)
        books.sent()

    # what is true of it

    def judge(self, now: list[Row]) -> None:
        for row in now:
            assert row.charged == (row.state in HOLDING), f"{row} has a charge it should not have, or none"
        used = self._used(now)
        quota_ = loop._idle_caches[0].scheduler.quota
        for leaf in self.low:
            assert used[leaf] <= self.high[leaf], f"{leaf} uses {used[leaf]}, more than its max {self.high[leaf]}"
            path = f"root/{leaf}"
            assert used[leaf] == books.used(path)[GPU] == quota_.ledger.used(path)[GPU]
        assert used.total() <= self.total
        for node, taken in self._taken(now).items():
            assert taken <= 8, f"{node} has 8 GPUs, of which {taken} are given away"

    def judge_evictions(self, evicted: list[Row]) -> None:
        for row in evicted:
            if books.job(row.name).reclaim["cause"] == "AboveMin":
                assert not self._is_protected(row), f"{row} was evicted within its min-runtime"

    def _is_protected(self, row: Row) -> bool:
        return row.admitted_at is not None and self.now - row.admitted_at < self.runtime[row.leaf]

    def judge_promises(self, now: list[Row]) -> None:
        """No job within its min waits although borrowers could be stopped for it."""
        if any(row.state == Job.State.RECLAIMING for row in now):
            return
        used = self._used(now)
        for row in now:
            if row.state != Job.State.QUEUED or used[row.leaf] + row.gpus > self.low[row.leaf]:
                continue
            if self.may_wait(row):
                continue
            if any(self._is_big(big) and big.leaf == row.leaf and big.place < row.place for big in now):
                continue  # nodes may be reserved for a big gang that is before it in its own queue
            if any(other.name != row.name and "protected by" in other.reason for other in now):
                continue  # what is free may be set aside for the other, which came first
            for gone in self._choices(now, row.leaf, used):
                assert not self._fits(row, [r for r in now if r.name not in gone]), (
                    f"{row} waits; {sorted(gone)} borrow"
                )

    def may_wait(self, row: Row) -> bool:
        """Whether it may wait although it is within its min, for a reason that this fleet has beside those of all."""
        return False

    def _is_big(self, row: Row) -> bool:
        return row.state == Job.State.QUEUED and row.gpus >= 8 * max(map(len, self.nodes)) // 2

    def _choices(self, now: list[Row], leaf: str, used: Counter[str]) -> Iterator[set[str]]:
        """The largest sets of jobs that may be stopped for a job of this leaf: each of a queue above its min when it goes."""
        sides: list[list[set[str]]] = []
        for other in self.low.keys() - {leaf}:
            jobs = [r for r in now if r.leaf == other and r.state in Job.ON_MEMBER and not r.firm]
            jobs = [r for r in jobs if not self._is_protected(r)]
            jobs = sorted(jobs, key=lambda r: -r.gpus)[:TRIED]
            over, sets = used[other] - self.low[other], [set[str]()]
            for many in range(len(jobs), 0, -1):
                for some in combinations(jobs, many):
                    names, sizes = {r.name for r in some}, [r.gpus for r in some]
                    if sum(sizes) - max(sizes) < over and not any(names < larger for larger in sets):
                        sets.append(names)
            sides.append(sets)
        for choice in product(*sides):
            yield set().union(*choice)

    def _fits(self, asks: Row, staying: list[Row]) -> bool:
        if self._used(staying).total() + asks.gpus > self.total:
            return False
        taken = self._taken(staying)
        for i, sizes in enumerate(self.nodes):
            rooms = [(gpus - taken[f"c{i}-{number}"]) // asks.each for number, gpus in enumerate(sizes)]
            if sum(rooms) >= asks.pods:
                return True
        return False

    def _used(self, now: list[Row]) -> Counter[str]:
        used: Counter[str] = Counter()
        for row in now:
            if row.state in HOLDING:
                used[row.leaf] += row.gpus
        return used

    def _taken(self, now: list[Row]) -> Counter[str]:
        """GPUs of each node that these jobs hold; every gang holds all of its own, on one cluster."""
        holds = defaultdict(list)
        names = {str(uid): name for uid, name in Job.objects.values_list("uid", "name")}
        for hold in Hold.objects.filter(released_at__isnull=True):
            holds[names[str(hold.job_uid)]].append(hold)
        taken: Counter[str] = Counter()
        for row in now:
            if row.state not in HOLDING:
                continue
            [hold] = holds[row.name]
            parts = [(node, amounts.get(GPU, 0)) for amounts, nodes in hold.nodes for node in nodes]
            assert sum(gpus for _, gpus in parts) == row.gpus, f"{row} holds a part of its gang: {parts}"
            assert len({node.partition("-")[0] for node, _ in parts}) == 1, f"{row} is on two clusters: {parts}"
            for node, gpus in parts:
                taken[node] += gpus
        return taken


def rows() -> list[Row]:
    return [_row(job) for job in Job.objects.exclude(state__in=Job.FINISHED).order_by("pk")]


def _row(job: Job) -> Row:
    leaf, firm = job.leaf.rpartition("/")[2], not job.preemptible
    place = -job.priority, job.queued_at
    admitted_at = job.charged_at if job.charge is not None else None
    facts = job.name, leaf, job.state, job.gpus, job.total["pods"], firm, job.charge is not None
    return Row(*facts, place, admitted_at, (job.reason or {}).get("message", ""))
