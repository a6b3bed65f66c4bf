"""Random fleets through the services, with nodes kept for big gangs: what a cycle placed the next one does not stop."""

from datetime import timedelta
from random import Random

import pytest
import yaml
from django.utils import timezone

from fleet.models import Cluster
from jobs.models import Job, Work
from jobs.services.lifecycle import cycle_requests
from jobs.services.scheduling import loop
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import APIS, GPU
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
LABEL = "quota.scheduling.alibabacloud.com/name"
ON_MEMBER = ("Placed", "Running")


def job(name: str, leaf: str, workers: int, gpus: int, priority: int = 0) -> str:
    body = yaml.safe_load(pytorch_job(name, workers=workers, gpus=gpus))
    body["metadata"] |= {"labels": {LABEL: leaf}, "annotations": {"convoy.dev/priority": str(priority)}}
    return yaml.safe_dump(body)


def nodes_of_8(many: int) -> None:
    now = timezone.now()
    north = Cluster.objects.create(
        name="north", access={}, state=Cluster.State.READY, apis=APIS, state_since=now, joined_at=now, synced_at=now
    )
    for i in range(many):
        north.nodes.create(name=f"node-{i}", ready=True, allocatable={"cpu": 10**5, "memory": 2**40, GPU: 8, "pods": 110})


def tree(total: int, *leaves: dict) -> None:
    whole = {"cpu": 10**6, "memory": "900000Gi", GPU: total, "kube-queue/max-jobs": 1000}
    trees.apply(manifest(quota("root", whole, whole, *leaves)), by="system", now=timezone.now())


def states() -> dict[str, str]:
    return dict(Job.objects.values_list("name", "state"))


def cycle() -> None:
    cycle_requests.request()
    books.cycle()


def rest() -> None:
    """Cycles until nothing changes; of what waits or comes now none of them places a gang that a later one stops."""
    waiting = {name for name, state in states().items() if state not in (*ON_MEMBER, "Reclaiming")}
    before = None
    while before != states():
        before = states()
        cycle()
        books.sent()
    assert not {name for name in waiting if before[name] == "Reclaiming"}
    started = timezone.now() - timedelta(minutes=10)
    Job.objects.filter(state="Placed").update(state="Running", started_at=started)


def leave(name: str) -> None:
    """A preempted job's pods are gone, and it waits again."""
    Work.objects.filter(job_uid=books.job(name).uid).update(state=Work.State.SUSPENDED)
    loop.let_go(timezone.now())
    books.gone(name)
    loop.let_go(timezone.now())


def happen(rng: Random) -> None:
    """Somebody who was preempted has left, or a job ends."""
    leaving = [name for name, state in sorted(states().items()) if state == "Reclaiming"]
    running = [name for name, state in sorted(states().items()) if state == "Running"]
    if leaving and rng.random() < 0.7:
        leave(rng.choice(leaving))
    elif running:
        books.end(rng.choice(running))
    Job.objects.filter(state="Queued").update(queued_at=timezone.now() - timedelta(seconds=600))
    loop._kept.clear()


@pytest.mark.parametrize("seed", range(8))
def test_it_stops_nothing_that_the_cycle_before_has_placed(seed):
    rng = Random(seed)
    many = rng.choice([4, 6])
    nodes_of_8(many)
    low = [rng.choice([0, many * 4, rng.randint(0, many * 4)]) for _ in "ab"]
    policies = [{"preempt-policy": rng.choice(["Never", "PreemptLowerPriority"])} for _ in "abc"]
    lows = [*low, many * 8 - sum(low) if rng.random() < 0.5 else 0]
    tree(many * 8, *(
        quota(name, {GPU: low}, {GPU: many * 8}, attributes=policy)
        for name, low, policy in zip("abc", lows, policies, strict=True)
    ))  # fmt: skip
    shapes = [(0, 1), (0, 4), (0, 8), (0, 8), (1, 8), (many // 2 - 1, 8), (many - 1, 8)]
    for wave in range(3):
        texts = [
            job(f"w{wave}j{i}", rng.choice("abc"), *rng.choice(shapes), rng.choice([0, 0, 1])) for i in range(rng.randint(3, 7))
        ]
        books.apply(*texts)
        for _ in range(5):
            rest()
            happen(rng)
    rest()


def test_it_does_not_start_a_borrower_beside_one_that_is_preempted_for_a_promise():
    nodes_of_8(2)
    tree(16, quota("a", {GPU: 16}, {GPU: 16}), quota("b", {GPU: 0}, {GPU: 16}))
    books.apply(job("old", "b", 0, 8))
    rest()
    books.apply(job("entitled", "a", 1, 8), job("borrower", "b", 0, 8))
    cycle()
    assert states() == {"old": "Reclaiming", "entitled": "Queued", "borrower": "Queued"}
    leave("old")
    cycle()
    assert states() == {"old": "Queued", "entitled": "Placed", "borrower": "Queued"}
