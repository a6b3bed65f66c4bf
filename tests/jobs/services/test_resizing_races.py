"""Several processes resize, suspend, schedule and dispatch the same jobs at once: nothing is counted twice or lost."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import OperationalError, connection, connections
from django.utils import timezone

from fleet.errors import ConvoyError
from fleet.kube.resources import PYTORCH_JOBS
from fleet.member.errors import MemberMissing
from fleet.models import Hold, Lease
from jobs.models import Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.follow import sweep
from jobs.services.lifecycle import works
from jobs.services.scheduling import loop
from jobs.services.submission.changes import actions, resizing
from tests.jobs.services.resizing import elastic, sizes_agree
from tests.support import books
from tests.support.books import GPU
from tests.support.quotas import PLENTY, apply_tree, gpus, leaf, ledger_is_exact
from tests.support.world import World

pytestmark = pytest.mark.django_db(transaction=True)
NAMES = ("one", "two", "three")
MAX = 14


@pytest.fixture
def world(transactional_db, tmp_path):
    world = World(tmp_path)
    world.still("north", 64)
    apply_tree(leaf("a", **gpus(MAX, MAX)), total=PLENTY)
    yield world
    world.stop()


def start(name: str) -> None:
    books.apply(elastic(name, 4, queue="a"))
    books.cycle()
    dispatcher.push(Work.objects.get(name=name, state=Work.State.PENDING).pk, timezone.now)
    Job.objects.filter(name=name).update(state=Job.State.RUNNING, started_at=timezone.now())
    Hold.objects.filter(job_uid=books.job(name).uid).update(released_at=timezone.now())


def act(name: str, seed: int, world: World) -> None:
    """One step of a person, the scheduler, a worker, or the member."""
    pick, now = random.Random(seed), timezone.now()
    job = Job.objects.filter(name=name).first()
    match pick.randrange(7):
        case 0 | 1 | 2 if job is not None:
            resizing.resize(job, {"worker": pick.randint(1, 8)}, by="alice", now=now)
        case 3 if job is not None:
            (actions.resume if job.suspended else actions.suspend)(job, by="bob", now=now)
        case 4:
            loop.run(timezone.now)
        case 5:
            for work in Work.objects.filter(name=name):
                dispatcher.push(work.pk, timezone.now)
        case _:
            Job.objects.filter(name=name, state=Job.State.DISPATCHED).update(state=Job.State.RUNNING)


def attempt(name: str, seed: int, world: World) -> None:
    try:
        act(name, seed, world)
    except ConvoyError:
        pass  # a refusal in words is an answer
    except OperationalError as e:
        assert "locked" in str(e) and connection.vendor == "sqlite"
    finally:
        connections.close_all()


def settle() -> None:
    """Everything that is ordered is carried out."""
    for _ in range(6):
        Lease.objects.update(holder="")
        sweep.run(timezone.now())
        loop.run(timezone.now)
        rows = works.actionable() | works.resizing()
        for pk in rows.values_list("pk", flat=True):
            Work.objects.filter(pk=pk).update(due_at=timezone.now(), claim="")
            dispatcher.push(pk, lambda: timezone.now() + timedelta(minutes=10))
    assert not works.resizing().exists()


def check(world: World) -> None:
    sizes_agree()
    assert ledger_is_exact() and books.used("root/a").get(GPU, 0) <= MAX
    charged = sum(job.total[GPU] for job in Job.objects.filter(charge__isnull=False))
    assert books.used("root/a").get(GPU, 0) == charged
    for job in Job.objects.filter(state=Job.State.RUNNING):
        try:
            copy = world.clients["north"].get(PYTORCH_JOBS.path(job.namespace, job.name))
        except MemberMissing:
            raise AssertionError(f"{job} runs and has no copy") from None
        assert copy["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == job.size["worker"]["replicas"]


@pytest.mark.parametrize("seed", range(3))
def test_sizes_charges_and_copies_agree_whoever_was_first(world, seed):
    for name in NAMES:
        start(name)
    with ThreadPoolExecutor(4) as pool:
        for number in range(60):
            pool.submit(attempt, NAMES[number % len(NAMES)], seed * 1000 + number, world)
    sizes_agree()
    settle()
    check(world)
    actions.delete(books.job("one"), by="test", now=timezone.now())
    settle()
    check(world)


def test_two_requests_at_once_are_one_after_the_other(world):
    start("one")
    barrier = threading.Barrier(2)

    def request(replicas: int) -> None:
        barrier.wait(60)
        try:
            resizing.resize(books.job("one"), {"worker": replicas}, by="alice", now=timezone.now())
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(request, replicas) for replicas in (2, 3)]:
            future.result(60)
    job = books.job("one")
    # The one that came second decided: 3 after 2 is a growth that waits, 2 after 3 is a second shrink.
    size, waits = job.size["worker"]["replicas"], (job.resize or {}).get("sizes")
    assert (size, waits) == (2, {"worker": 3}) or (size, waits) == (2, None)
    assert job.charge[GPU] == 2
    settle()
    check(world)
