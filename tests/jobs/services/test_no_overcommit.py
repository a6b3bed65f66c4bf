"""The fleet never promises a cluster more than it has: in a burst, with slow, stale or shared members, under two schedulers.

A cluster here is a model of what truly is in it; the fleet is shown that through the services that write what a watch shows,
at once or late. Time is virtual.
"""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from fleet.core.members import marks
from fleet.core.members.observed import Mark, ObservedNode, ObservedPod, OwnPod
from fleet.kube.resources import PYTORCH_JOBS
from fleet.models import Cluster, Hold, Lease, Node
from fleet.services.watching.node_pod_sync import NodePodSync
from jobs.models import Job, Work
from jobs.services.follow.status import JobEventHandler
from jobs.services.lifecycle import cycle_requests
from jobs.services.scheduling import loop
from jobs.services.scheduling.cache import SchedulerCache
from jobs.services.scheduling.decisions import apply, lease
from jobs.services.submission import manifests, submit
from tests.support.books import APIS, GPU
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NODES, GPUS = 4, 8
BIND_S, RUN_S, STEP_S = 60, 30, 15


@dataclass
class Gang:
    job: Job
    born: int
    bound: int | None = None
    places: list[str] = field(default_factory=list)


class Member:
    """Binds each gang whole a minute after its copy came, if it has room; ``lag_s`` later the fleet is shown what happened."""

    def __init__(self, name: str, lag_s: int = 0) -> None:
        fields = {"state_since": NOON, "joined_at": NOON, "state": Cluster.State.READY}
        self.row = Cluster.objects.create(name=name, access={}, apis=APIS, **fields)
        self.lag_s = lag_s
        self.supply = NodePodSync(self.row.pk)
        offered = {"cpu": 10**6, "memory": 2**50, GPU: GPUS, "pods": 1000}
        self.free = {f"{name}-{i}": GPUS for i in range(NODES)}
        self.supply.list_nodes([ObservedNode(node, True, False, {}, [], offered) for node in self.free])
        self.supply.list_pods([])
        self.supply.write(NOON)
        self.gangs: dict[int, Gang] = {}
        self._late: deque[tuple[int, Callable[[], object]]] = deque()
        self._others = 0

    @property
    def promised(self) -> int:
        """GPUs of gangs whose copies are here and not over."""
        return sum(gang.job.gpus for gang in self.gangs.values())

    def tick(self, second: int) -> None:
        for work in Work.objects.filter(cluster=self.row, state=Work.State.PENDING):
            gang = self.gangs[work.pk] = Gang(Job.objects.get(uid=work.job_uid), second)
            self._show(gang, second)
        Work.objects.filter(cluster=self.row, state=Work.State.PENDING).update(state=Work.State.APPLIED)
        for key, gang in list(self.gangs.items()):
            if gang.bound is None and gang.born + BIND_S <= second:
                self._bind(gang, second)
            elif gang.bound is not None and gang.bound + RUN_S <= second:
                self._end(key, gang, second)
        while self._late and self._late[0][0] <= second:
            self._late.popleft()[1]()
        self.supply.write(at(second))

    def take(self, node: str, gpus: int, second: int) -> None:
        """Somebody else's pod, which asked nobody."""
        taken = min(gpus, self.free[node])
        self.free[node] -= taken
        self._others += 1
        pod = ObservedPod("other", f"pod-{self._others}", node, True, {GPU: taken, "pods": 1})
        self._later(second, lambda: self.supply.see_pod(pod))

    def _bind(self, gang: Gang, second: int) -> None:
        room = dict(self.free)
        places = []
        for _ in range(gang.job.gpus):
            node = max(room, key=room.__getitem__)
            if not room[node]:
                return
            room[node] -= 1
            places.append(node)
        self.free, gang.bound, gang.places = room, second, places
        self._show(gang, second)

    def _end(self, key: int, gang: Gang, second: int) -> None:
        for node in gang.places:
            self.free[node] += 1
        del self.gangs[key]
        self._show(gang, second, "Succeeded")
        job = gang.job
        labels = {marks.JOB_UID: str(job.uid), marks.ATTEMPT: str(job.attempt)}
        status = {"conditions": [{"type": "Succeeded", "status": "True"}]}
        copy = {"metadata": {"name": job.name, "namespace": "default", "labels": labels}, "status": status}
        self._later(second, lambda: JobEventHandler().on_update(self.row.pk, PYTORCH_JOBS, [copy], at(second)))

    def _show(self, gang: Gang, second: int, phase: str = "Running") -> None:
        mark = Mark(gang.job.uid, gang.job.attempt)
        for index in range(gang.job.gpus):
            node = gang.places[index] if gang.places else ""
            phase = phase if node else "Pending"
            own = OwnPod(mark, f"{gang.job.uid}-{index}", "worker", index, phase, 1, 1, 0, "", "", NOON, None)
            counts = bool(node) and phase == "Running"
            pod = ObservedPod("default", f"{gang.job.name}-{index}", node, counts, {GPU: 1, "pods": 1}, own)
            self._later(second, lambda pod=pod: self.supply.see_pod(pod))

    def _later(self, second: int, shown: Callable[[], object]) -> None:
        self._late.append((second + self.lag_s, shown))


def at(second: int) -> datetime:
    return NOON + timedelta(seconds=second)


def burst(gangs: int) -> None:
    sizes = random.Random(7).choices(range(8), k=gangs)
    texts = [POLICY, *(pytorch_job(f"job-{i}", workers=size) for i, size in enumerate(sizes))]
    submit.apply(manifests.parse("\n---\n".join(texts).encode()), by="test", now=NOON)


def held_and_seen(member: Member) -> int:
    """What the fleet counts as taken."""
    held = Hold.objects.filter(cluster=member.row, released_at__isnull=True)
    seen = Node.objects.filter(cluster=member.row)
    return sum(node.requested.get(GPU, 0) for node in seen) + sum(hold.amounts.get(GPU, 0) for hold in held)


def play(members: list[Member], steps: int, each: Callable[[int], None] = lambda second: None) -> None:
    """Nobody is ever promised what is not there: neither as the fleet counts nor as the members know."""
    for second in range(0, steps * STEP_S, STEP_S):
        each(second)
        before = [held_and_seen(member) for member in members]
        loop.run(lambda second=second: at(second))
        for member, was in zip(members, before, strict=True):
            now = held_and_seen(member)
            assert now <= NODES * GPUS or now == was, (member.row.name, second, now)
            member.tick(second)
            assert member.promised <= NODES * GPUS, (member.row.name, second)


def done() -> int:
    return Job.objects.filter(state=Job.State.SUCCEEDED).count()


@pytest.fixture(autouse=True)
def no_picture_of_before():
    loop._idle_caches.clear()
    yield
    loop._idle_caches.clear()


def test_in_a_burst_of_a_thousand_gangs_whose_pods_take_a_minute_to_be_bound():
    members = [Member(name) for name in ("north", "south", "west")]
    burst(1000)
    play(members, 16)
    assert done() >= 30 and sum(member.promised for member in members) > 0


def test_when_a_new_scheduler_takes_over_before_every_cycle():
    members = [Member(name) for name in ("north", "south")]
    burst(60)
    play(members, 40, lambda second: loop._idle_caches.clear())
    assert done() >= 40


def test_when_the_fleet_is_shown_what_happened_half_a_minute_late():
    members = [Member(name, lag_s=30) for name in ("north", "south")]
    burst(60)
    play(members, 40)
    assert done() >= 30


@pytest.mark.parametrize("lag_s", [0, 30])
def test_in_members_that_get_pods_from_elsewhere(lag_s):
    members = [Member(name, lag_s) for name in ("north", "south")]
    rng = random.Random(3)
    burst(60)

    def others(second: int) -> None:
        member = rng.choice(members)
        node = rng.choice(sorted(member.free))
        if second % 60 == 0 and sum(member.free.values()) > NODES * GPUS // 2:
            member.take(node, rng.randint(1, 3), second)

    play(members, 30, others)
    assert done() >= 20


def test_a_scheduler_that_lost_its_lease_to_another_writes_nothing_of_its_plan():
    member = Member("north")
    burst(40)
    first = lease.acquire("first", at(0))
    plan = SchedulerCache().refresh(at(0)).run(at(0))
    assert plan.placed and loop.run(lambda: at(0)) == 0
    second = loop.run(lambda: at(31))
    assert second == len(plan.placed) and Lease.objects.get(name=cycle_requests.LEASE).epoch > first
    assert apply.apply_plan(plan, first, at(31)) is None
    assert held_and_seen(member) <= NODES * GPUS and Hold.objects.count() == second


def test_two_plans_of_the_same_moment_are_written_once():
    member = Member("north")
    burst(40)
    plans = [SchedulerCache().refresh(at(0)).run(at(0)) for _ in range(2)]
    epoch = lease.acquire("one", at(0))
    won = [apply.apply_plan(plan, epoch, at(0)).placed for plan in plans]
    assert len(won[0]) == len(plans[0].placed) > 0 and won[1] == set()
    assert held_and_seen(member) <= NODES * GPUS
