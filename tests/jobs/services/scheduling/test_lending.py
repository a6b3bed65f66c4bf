"""What a cycle has placed the next one does not stop, through the services."""

from datetime import timedelta

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
        north.nodes.create(
            name=f"node-{i}", ready=True, allocatable={"cpu": 10**5, "memory": 2**40, GPU: 8, "pods": 110}
        )


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
    loop.advance_evictions(timezone.now())
    books.gone(name)
    loop.advance_evictions(timezone.now())


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


def test_a_promise_is_kept_that_only_a_placement_of_the_same_cycle_was_in_the_way_of():
    """b3 needs half a node and two quarters are free. a3 takes one, so that a borrows: once it runs, a1 or a2 makes room."""
    nodes_of_8(2)
    protects = {"min-runtime": "10m"}
    tree(16, *(quota(name, {GPU: low}, {GPU: 16}, attributes=protects) for name, low in (("a", 8), ("b", 8), ("c", 0))))
    now = timezone.now()
    for name, gpus in [("a1", 4), ("b1", 2), ("c1", 2), ("a2", 4), ("b2", 2), ("c2", 2)]:
        books.apply(job(name, name[0], 0, gpus))
        books.cycle(now)
    books.sent()
    Job.objects.update(state="Running", started_at=now)
    books.end("c1")
    books.end("c2")
    books.apply(job("b3", "b", 0, 4), job("a3", "a", 0, 2))
    for seconds in (3600, 3601):
        books.cycle(now + timedelta(seconds=seconds))
    assert states()["a3"] == "Placed"
    assert [name for name, state in states().items() if state == "Reclaiming"] in (["a1"], ["a2"])
