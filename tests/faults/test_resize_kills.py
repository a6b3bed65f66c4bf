"""A worker is killed -9 before and after everything it writes in a resize, from the request to the member's copy.

Wherever it dies: the sweep finds what is left to do. Size, charge and hold agree at any moment, and the copy does at the end.
"""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.kube.resources import PYTORCH_JOBS
from fleet.models import Cluster, Event, Hold, Lease
from jobs.models import Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.follow import sweep
from jobs.services.lifecycle import works
from jobs.services.scheduling import loop
from jobs.services.submission.changes import resizing as service
from tests.faults.builders import Killer
from tests.jobs.services import resizing
from tests.support import books
from tests.support.books import GPU
from tests.support.quotas import PLENTY, apply_tree, gpus, leaf, ledger_is_exact
from tests.support.world import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def killer(django_db_setup):
    made = Killer("tests.support.resize_killer")
    yield made
    made.close()


@pytest.fixture
def member(transactional_db, tmp_path):
    world = World(tmp_path)
    world.still("north", 64)
    apply_tree(leaf("a", **gpus(8, 8)), total=PLENTY)
    yield world
    world.stop()


def running(number: int) -> Job:
    """A job of four workers whose copy is in the member."""
    name = f"llama-{number}"
    books.apply(resizing.elastic(name, 4, queue="a"))
    assert books.cycle() == 1
    dispatcher.push(Work.objects.get(name=name).pk, timezone.now)
    Job.objects.filter(name=name).update(state=Job.State.RUNNING, started_at=timezone.now())
    Hold.objects.filter(job_uid=books.job(name).uid).update(released_at=timezone.now())
    return books.job(name)


def recover(job: Job, replicas: int) -> None:
    """What the beat does once the claim and the lease of the dead have run out. A request that was lost is made again."""
    long_ago = timezone.now() - timedelta(hours=1)
    Work.objects.exclude(claim="").update(claimed_at=long_ago)
    Lease.objects.exclude(holder="").update(expires_at=long_ago)
    service.resize(books.job(job.name), {"worker": replicas}, by="alice", now=timezone.now())
    for _ in range(3):
        sweep.run(timezone.now())
        loop.run(timezone.now)
        for pk in list(works.resizing().values_list("pk", flat=True)):
            Work.objects.filter(pk=pk).update(due_at=timezone.now())
            dispatcher.push(pk, timezone.now)


def between(job: Job) -> None:
    """What holds at any moment, whichever steps were taken."""
    resizing.sizes_agree()
    assert books.used("root/a")[GPU] == resizing.size(job.name) and ledger_is_exact()
    held = Hold.objects.filter(job_uid=job.uid, released_at=None).first()
    grown = max(resizing.size(job.name) - 4, 0)
    assert (held.amounts[GPU] if held else 0) == grown
    assert resizing.order(job.name).resize_wanted == (resizing.size(job.name) != 4)


def check(member: World, job: Job, replicas: int) -> None:
    path = PYTORCH_JOBS.path(job.namespace, job.name)
    spec = member.clients["north"].get(path)["spec"]["pytorchReplicaSpecs"]
    work = resizing.order(job.name)
    assert (resizing.size(job.name), spec["Worker"]["replicas"]) == (replicas, replicas)
    assert (work.state, work.claim, work.resize_wanted, work.resize_done) == (Work.State.APPLIED, "", 1, 1)
    assert (books.job(job.name).state, books.job(job.name).attempt, books.job(job.name).resize) == ("Running", 1, None)
    assert Event.objects.filter(regarding_uid=str(job.uid), reason="Resized").get().count == 1
    between(job)


def forget(member: World, job: Job) -> None:
    books.end(job.name)
    member.delete(job.name)
    for work in Work.objects.filter(job_uid=job.uid):
        dispatcher.push(work.pk, timezone.now)
    assert not Hold.objects.filter(released_at=None).exists() and Cluster.objects.count() == 1


@pytest.mark.parametrize(("replicas", "steps"), [(2, 15), (7, 25)])
def test_it_ends_every_resize_alike_whatever_step_the_worker_dies_at(member, killer, replicas, steps):
    for step in range(1, 1000):
        job = running(step)
        outcome = killer.ask(job.name, replicas, step)
        assert outcome in ("killed", "done"), outcome
        between(job)
        if outcome == "killed":
            recover(job, replicas)
        check(member, job, replicas)
        if outcome == "done":
            break
        forget(member, job)
    assert step > steps
