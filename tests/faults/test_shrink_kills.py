"""A worker is killed -9 before and after everything it writes when an elastic job gives back pods to a preemptor.

Wherever it dies: size, charge and hold agree, the job runs on in its attempt, and in the end it gave back what was missing,
once, its copy has that size, and the preemptor has its place.
"""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.kube.resources import PYTORCH_JOBS
from fleet.models import Event, Hold, Lease
from jobs.core.resizing.elastic import ELASTIC
from jobs.models import Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.follow import sweep
from jobs.services.lifecycle import works
from jobs.services.scheduling import loop
from tests.faults.builders import Killer
from tests.jobs.services import resizing
from tests.support import books
from tests.support.books import GPU
from tests.support.quotas import PLENTY, apply_tree, gpus, leaf
from tests.support.world import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def killer(django_db_setup):
    made = Killer("tests.support.shrink_killer")
    yield made
    made.close()


@pytest.fixture
def member(transactional_db, tmp_path):
    """One member with room for everybody, so that it is the quota that is short."""
    world = World(tmp_path)
    world.still("north", 64)
    apply_tree(leaf("a", **gpus(3, 4)), leaf("b", **gpus(1, 4)), total={**PLENTY, GPU: 4})
    yield world
    world.stop()


def borrow_and_claim(number: int) -> Job:
    """The elastic job runs on what it borrowed; its owner's job has just been submitted."""
    name = f"llama-{number}"
    books.apply(resizing.elastic(name, 4, queue="b", annotations={ELASTIC: "true"}))
    assert books.cycle() == 1
    dispatcher.push(Work.objects.get(name=name).pk, timezone.now)
    Job.objects.filter(name=name).update(state=Job.State.RUNNING, started_at=timezone.now())
    Hold.objects.filter(job_uid=books.job(name).uid).update(released_at=timezone.now())
    books.apply(resizing.elastic(f"mine-{number}", 2, queue="a"))
    return books.job(name)


def recover() -> None:
    """What the beat does once the claim and the lease of the dead have run out."""
    long_ago = timezone.now() - timedelta(hours=1)
    Work.objects.exclude(claim="").update(claimed_at=long_ago)
    Lease.objects.exclude(holder="").update(expires_at=long_ago)
    for _ in range(3):
        sweep.run(timezone.now())
        loop.run(timezone.now)
        for pk in list(works.resizing().values_list("pk", flat=True)):
            Work.objects.filter(pk=pk).update(due_at=timezone.now())
            dispatcher.push(pk, timezone.now)


def between(job: Job) -> None:
    """What holds at any moment, whichever steps were taken."""
    now = books.job(job.name)
    resizing.sizes_agree()
    assert resizing.size(job.name) in (2, 4) and books.used("root")[GPU] <= 4
    assert (now.state, now.attempt) == (Job.State.RUNNING, 1)
    assert (now.shrinks is not None) == (resizing.size(job.name) == 2)
    assert resizing.order(job.name).resize_wanted == (resizing.size(job.name) == 2)


def check(member: World, job: Job, number: int) -> None:
    between(job)
    spec = member.clients["north"].get(PYTORCH_JOBS.path(job.namespace, job.name))["spec"]
    assert (resizing.size(job.name), spec["pytorchReplicaSpecs"]["Worker"]["replicas"]) == (2, 2)
    assert (resizing.order(job.name).resize_done, resizing.order(job.name).claim) == (1, "")
    assert books.job(f"mine-{number}").state == Job.State.PLACED
    assert len(books.job(job.name).shrinks) == 1 and books.used("root")[GPU] == 4
    assert Event.objects.get(regarding_uid=str(job.uid), reason="Resized").count == 1


def forget(member: World, job: Job, number: int) -> None:
    for name in (job.name, f"mine-{number}"):
        Work.objects.filter(job_uid=books.job(name).uid, state=Work.State.PENDING).update(state=Work.State.GONE)
        books.end(name)
    member.delete(job.name)
    for work in Work.objects.filter(job_uid=job.uid):
        dispatcher.push(work.pk, timezone.now)
    Hold.objects.filter(released_at=None).update(released_at=timezone.now())


def test_it_takes_the_pods_once_whatever_step_the_worker_dies_at(member, killer):
    for step in range(1, 1000):
        job = borrow_and_claim(step)
        outcome = killer.ask(job.name, step)
        assert outcome in ("killed", "done"), outcome
        between(job)
        if outcome == "killed":
            recover()
        check(member, job, step)
        if outcome == "done":
            break
        forget(member, job, step)
    assert step > 20
