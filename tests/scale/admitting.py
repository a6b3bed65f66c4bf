"""Drives the load of the benchmark ``admission`` in a process with the product's own settings, and prints what came of it.

Objects come from a process of their own, by REST, through the web process that `up` starts; the scheduler runs here, whenever a
cycle is wanted, as in a worker; what members report is taken in by one more process, as by the watcher. Members are capacity
alone: what is measured ends when the placement is committed, and a job ends when its time is over, as its member would report
it. Wall clock.
"""

import heapq
import json
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import django
import httpx

from fleet import gc_tuning
from tests.scale import promises

AT_ONCE = 100
"""Jobs in one request, at most."""
RUNS_S = {1: 0.2, 5: 0.5, 20: 1.0}
EVERY_S = {1: 0.1, 5: 0.5, 20: 1.2}
"""How often a queue is given one of so many CPUs, as by Kueue's generator."""
LOOK_S = 0.03
"""How often members look for what is to start or to stop, which nobody tells them here."""
PRIORITY = {1: 50, 5: 100, 20: 200}
OF_TEN = (1,) * 7 + (5,) * 2 + (20,)
"""CPUs of ten jobs in a row: Kueue's 350 small, 100 medium and 50 large ones a queue."""
NOMINAL = 20
Report = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    cohorts: int
    queues: int
    """Of a cohort."""
    jobs: int

    @property
    def leaves(self) -> int:
        return self.cohorts * self.queues

    def cpu(self, number: int) -> int:
        return OF_TEN[number // self.leaves % 10]

    def due_s(self, number: int) -> float:
        """When it is sent, from the beginning on."""
        tens, place = divmod(number // self.leaves, 10)
        cpu = OF_TEN[place]
        return EVERY_S[cpu] * (tens * OF_TEN.count(cpu) + place - OF_TEN.index(cpu))

    def job(self, number: int) -> dict[str, Any]:
        cohort, queue, cpu = number % self.cohorts, number // self.cohorts % self.queues, self.cpu(number)
        container = {"name": "main", "image": "example.com/x", "resources": {"requests": {"cpu": cpu}}}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        metadata = {
            "name": f"job-{number}",
            "namespace": f"q{cohort}-{queue}",
            "annotations": {"convoy.dev/priority": str(PRIORITY[cpu])},
            "labels": {"cpu": str(cpu)},
        }
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def prepare(shape: Shape) -> str:
    """Database, quota tree, policy and a member of rows; returns the token of somebody who may submit."""
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.utils import timezone

    from fleet.models import Cluster
    from fleet.services.authorization import access
    from jobs.services.submission import manifests, submit
    from quotas.services import trees
    from tests.quotas.core.builders import manifest, quota
    from tests.support.world import POLICY

    call_command("migrate", verbosity=0)
    now = timezone.now()
    top = {"cpu": NOMINAL * shape.queues}

    def leaf(name: str) -> Any:
        return quota(name, {"cpu": NOMINAL}, top, namespaces=[name])

    cohorts = [
        quota(f"c{c}", top, top, *(leaf(f"q{c}-{q}") for q in range(shape.queues))) for c in range(shape.cohorts)
    ]
    whole = {"cpu": NOMINAL * shape.leaves}
    trees.apply(manifest(quota("root", whole, whole, *cohorts)), by="bench", now=now)
    north = Cluster.objects.create(
        name="north", access={}, state=Cluster.State.READY, apis={"batch/v1": {"Job": "jobs"}}, state_since=now,
        joined_at=now, synced_at=now,
    )  # fmt: skip
    for i in range(shape.leaves):
        offered = {"cpu": NOMINAL * 1000, "memory": 2**40, "pods": 10_000}
        north.nodes.create(name=f"node-{i}", ready=True, allocatable=offered)
    policy = POLICY.replace("kind: PropagationPolicy", "kind: ClusterPropagationPolicy")
    submit.apply(manifests.parse(policy.encode()), by="bench", now=now)
    user = get_user_model().objects.create_superuser("bench", password=None)
    return access.mint(user, "bench", life=None, now=now)[1]


@contextmanager
def web() -> Iterator[str]:
    """The web process as `up` starts it; its address."""
    from deploy.bootstrap import ports
    from deploy.supervisor import product

    port = ports.any_free(0)
    with subprocess.Popen(product.web_command(port), env={**os.environ, "CONVOY_PORT": str(port)}) as server:
        address = f"http://127.0.0.1:{port}"
        try:
            for _ in range(300):
                try:
                    httpx.get(f"{address}/healthz").raise_for_status()
                    break
                except httpx.HTTPError:
                    time.sleep(0.1)
            yield address
        finally:
            server.terminate()


@contextmanager
def played(part: str, *given: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of its own for those who are no part of the product."""
    command = [sys.executable, "-m", "tests.scale.admitting", part, *given]
    with subprocess.Popen(command, env=os.environ, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.terminate()


def play_client(shape: Shape, address: str, token: str) -> None:
    """Sends what is due, and prints when it began and how many seconds that took."""
    began_at = datetime.now(UTC)
    began, line = time.perf_counter(), sorted(range(shape.jobs), key=shape.due_s)
    with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        while line:
            at = time.perf_counter() - began
            due = [number for number in line[:AT_ONCE] if shape.due_s(number) <= at]
            if not due:
                time.sleep(max(shape.due_s(line[0]) - at, 0.0))
                continue
            del line[: len(due)]
            body = {"apiVersion": "v1", "kind": "List", "items": [shape.job(n) for n in due]}
            client.post("/api/v1/apply/", json=body).raise_for_status()
    print(began_at.isoformat(), round(time.perf_counter() - began, 1))


def play_members() -> None:
    from django.utils import timezone

    members, looked_at = Members(), 0.0
    while True:
        ended = members.end_those_whose_time_is_over(timezone.now())
        if time.monotonic() - looked_at > LOOK_S:
            looked_at = time.monotonic()
            members.take_in(timezone.now())
        elif not ended:
            time.sleep(0.005)


class Members:
    """What the watcher does, for members that need no more than to be told when a job's time is over."""

    def __init__(self) -> None:
        self.newest = 0
        self.running: list[tuple[datetime, int, int, dict[str, Any]]] = []
        """When each attempt ends, the next one first; its cluster, and what that will report."""

    def take_in(self, now: datetime) -> None:
        """Those who come, and those who have to leave."""
        from jobs.models import Attempt, Work

        rows = Attempt.objects.filter(pk__gt=self.newest).order_by("pk")
        where = ("job__cluster", "job__uid", "job__name", "job__namespace", "job__labels__cpu")
        came = list(rows.values_list("pk", "placed_at", "number", *where))
        for pk, at, number, cluster, uid, name, space, cpu in came:
            labels = {"convoy.dev/job-uid": str(uid), "convoy.dev/attempt": str(number)}
            status = {"conditions": [{"type": "Complete", "status": "True"}]}
            copy = {"metadata": {"name": name, "namespace": space, "labels": labels}, "status": status}
            heapq.heappush(self.running, (at + timedelta(seconds=RUNS_S[int(cpu)]), pk, cluster, copy))
            self.newest = pk
        if came:
            Work.objects.filter(state=Work.State.PENDING).update(state=Work.State.APPLIED)
        _leave(now)

    def end_those_whose_time_is_over(self, now: datetime) -> int:
        from jobs.kinds import registry
        from jobs.services.follow.status import JobEventHandler

        over: dict[int, list[dict[str, Any]]] = defaultdict(list)
        while self.running and self.running[0][0] <= now:
            _, _, cluster, copy = heapq.heappop(self.running)
            over[cluster].append(copy)
        for cluster, copies in over.items():
            JobEventHandler().on_update(cluster, registry.kind_of("batch/v1", "Job").resource, copies, now)
        return sum(map(len, over.values()))


@dataclass
class Load:
    shape: Shape
    ended: int = 0
    cycles: int = 0
    used: list[int] = field(default_factory=list)
    _looked_at: float = 0.0

    def run(self, patience_s: float, client: subprocess.Popen[bytes]) -> None:
        from django.utils import timezone

        from jobs.services.lifecycle import cycle_requests
        from jobs.services.scheduling import loop

        began, served = time.monotonic(), None
        while self.ended < self.shape.jobs and not client.poll() and time.monotonic() - began < patience_s:
            wanted = cycle_requests.requests()
            if wanted == served:
                time.sleep(0.004)
            else:
                loop.run(timezone.now)
                served, self.cycles = wanted, self.cycles + 1
            self._look()

    def _look(self) -> None:
        """Once in a while who has ended, and how much of what the queues have is used."""
        from jobs.models import Job

        if time.monotonic() - self._looked_at > 0.5:
            self._looked_at = time.monotonic()
            self.ended = Job.objects.filter(finished_at__isnull=False).count()
            charges = Job.objects.filter(charge__isnull=False).values_list("charge", flat=True)
            self.used.append(sum(charge["cpu"] for charge in charges))


def _leave(now: datetime) -> None:
    """Whoever is taken back from stops at once."""
    from fleet.models import Hold
    from jobs.models import Work
    from jobs.services.scheduling import loop

    stopping = Work.objects.filter(state__in=[Work.State.SUSPENDING, Work.State.WITHDRAWING])
    uids = list(stopping.values_list("job_uid", flat=True))
    if uids:
        stopping.update(state=Work.State.GONE)
        Hold.objects.filter(job_uid__in=uids).update(released_at=now)
        loop.advance_evictions(now)


def result(load: Load, began: datetime, submitted_s: float) -> Report:
    from django.db import connection

    from jobs.models import Attempt

    rows = Attempt.objects.values_list("placed_at", "job__queued_at", "job__labels__cpu", "number").order_by(
        "placed_at"
    )
    waits: dict[str, list[float]] = defaultdict(list)
    last, attempts = began, Counter[bool]()
    for placed_at, queued_at, cpu, number in rows:
        last = placed_at
        attempts[number > 1] += 1
        if number == 1:
            waits[{"1": "small", "5": "medium", "20": "large"}[cpu]].append((placed_at - queued_at).total_seconds())
    seconds, jobs = (last - began).total_seconds(), load.shape.jobs
    broken = promises.longest_broken(placements(), NOMINAL)
    return {
        "jobs": jobs, "queues": load.shape.leaves, "ended": load.ended,
        "seconds": round(seconds, 1), "per_second": round(jobs / seconds, 1), "submitted_in_s": submitted_s,
        "cycles": load.cycles, "placed_again": attempts[True], "longest_within_min_beside_borrowers_s": round(broken, 2),
        "mean_use": round(sum(load.used) / len(load.used) / (NOMINAL * 1000 * load.shape.leaves), 3),
        "mean_wait_s": {name: round(sum(each) / len(each), 2) for name, each in waits.items()},
        "database": f"{connection.vendor} {connection.pg_version if connection.vendor == 'postgresql' else ''}".strip(),
    }  # fmt: skip


def placements() -> Iterator[promises.Ran]:
    """What ran when and waited for how long, by the rows alone; a stopped job waits anew from the end of its attempt."""
    from jobs.models import Attempt

    rows = Attempt.objects.filter(ended_at__isnull=False).order_by("job_id", "number")
    columns = "job__namespace", "job__labels__cpu", "job__queued_at", "placed_at", "ended_at", "job_id"
    waits_since: dict[int, datetime] = {}
    for queue, cpu, queued_at, placed_at, ended_at, job in rows.values_list(*columns):
        times = (at.timestamp() for at in (waits_since.get(job, queued_at), placed_at, ended_at))
        yield promises.Ran(queue, queue.partition("-")[0], int(cpu), *times)
        waits_since[job] = ended_at


def main() -> None:
    shape, patience_s = Shape(*(int(each) for each in sys.argv[1:4])), float(sys.argv[4])
    token = prepare(shape)
    with web() as address, played("members"), played("client", *sys.argv[1:4], address, token) as client:
        load = Load(shape)
        load.run(patience_s, client)
        began_at, submitted_s = client.communicate(timeout=60)[0].decode().split()
    print(json.dumps(result(load, datetime.fromisoformat(began_at), float(submitted_s))))


if __name__ == "__main__":
    django.setup()
    gc_tuning.shorten()
    match sys.argv[1]:
        case "members":
            play_members()
        case "client":
            play_client(Shape(*map(int, sys.argv[2:5])), *sys.argv[5:7])
        case _:
            main()
