"""The fleet is away while a node is reclaimed: the supervisor does it all by itself, and the fleet learns of it afterwards.

Real are the supervisor's loop and plan, the record that it leaves on the job, and what the fleet makes of that. The member
and its pods are played (`tests.supervisor.world`).
"""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import Pod
from jobs.models import Attempt, Job, Notice, Work
from jobs.runtime.notices import NOTICES
from jobs.services.follow import notices
from jobs.services.follow.status import JobEventHandler
from jobs.services.scheduling import loop
from tests.jobs.services import resizing
from tests.jobs.services.resizing import runs, size, sizes_agree
from tests.supervisor.world import JOB_UID, World, play
from tests.support import books
from tests.support.books import GPU
from tests.support.quotas import apply_tree, gpus, leaf

pytestmark = pytest.mark.django_db
AWAY_S, WORKERS = 600.0, 4


@pytest.fixture
def now():
    return timezone.now()


def reclaimed(now, *, least: int) -> World:
    """A node with two of the workers is taken back with 30 s of notice, right after the fleet was heard of last."""
    world = World(now=now.timestamp() - AWAY_S, saves_s=5)
    world.job(workers=WORKERS, least=least)
    for index in range(WORKERS):
        world.pod(f"bert-worker-{index}", f"n{index // 2}")
    world.reclaim("n1", 30)
    books.a_cluster("north", 8)
    apply_tree(leaf("a", **gpus(8, 8)))
    books.apply(resizing.elastic("bert", WORKERS, least=least, most=WORKERS, queue="a"))
    job = runs("bert")
    Work.objects.filter(job_uid=job.uid).update(object_uid=JOB_UID)
    play(world, AWAY_S)
    return world


def comes_back(world: World, now) -> Job:
    """The watch lists the member again: the copy as the supervisor left it, and the pods that are bound still."""
    kept = world.jobs["bert"]
    copy = books.copy("bert", {"conditions": [{"type": "Running", "status": "True"}]})
    copy["metadata"] |= {"uid": JOB_UID, "annotations": {NOTICES: kept["metadata"]["annotations"][NOTICES]}}
    bound = [name for name, pod in world.pods.items() if pod["spec"]["nodeName"]]
    Pod.objects.exclude(name__in=bound).update(node="", phase="Pending")
    JobEventHandler().on_update(books.job("bert").cluster_id, books.resource("bert"), [copy], now)
    notices.settle(now)
    return books.job("bert")


def test_a_job_shrinks_although_the_fleet_learns_of_it_ten_minutes_later(now):
    world = reclaimed(now, least=2)
    assert set(world.pods) == {f"bert-worker-{index}" for index in range(WORKERS)} and len(world.deleted) == 2
    job = comes_back(world, now)
    assert (job.state, job.attempt, size("bert"), books.used("root/a")[GPU]) == (Job.State.RUNNING, 1, 2, 2)
    assert job.resize["sizes"] == {"worker": WORKERS} and Attempt.objects.get().ended_at is None
    rows = Notice.objects.order_by("pod")
    assert [row.pod for row in rows] == ["bert-worker-2", "bert-worker-3"]
    for row in rows:
        assert abs(row.at - (now - timedelta(seconds=AWAY_S))) < timedelta(seconds=5), (
            "when it was, not when it was learnt"
        )
        assert row.at <= row.heard_at < row.left_at <= row.deadline
    sizes_agree()


def test_a_job_below_its_min_has_saved_and_stopped_and_is_queued_again(now):
    world = reclaimed(now, least=3)
    assert world.jobs["bert"]["spec"]["runPolicy"]["suspend"] and not world.pods
    job = comes_back(world, now)
    assert job.state == Job.State.RECLAIMING
    assert (
        Notice.objects.filter(heard_at__isnull=False, left_at__isnull=False, stopped_at__isnull=False).count()
        == WORKERS
    )
    books.gone("bert")
    loop.advance_evictions(now)
    assert (books.job("bert").state, Attempt.objects.get().outcome) == (Job.State.QUEUED, "Reclaimed")
