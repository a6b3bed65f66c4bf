"""A charge ends with the job's pods: at once where somebody saw it, and by the sweep where nobody did."""

import uuid

import pytest
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from fleet.models import Cluster, Pod
from jobs.core.failover.lifecycle import Action
from jobs.models import Job, Work
from jobs.services.follow import sweep
from jobs.services.lifecycle.accounting import charges
from jobs.services.submission.changes import actions
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import GPU, team
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
WHOLE = {"cpu": 10**5, "memory": "900000Gi", GPU: 9, "kube-queue/max-jobs": 1000}


def a_tree() -> None:
    root = quota("root", WHOLE, WHOLE, team("a", 3, 9, namespaces=["default"]))
    trees.apply(manifest(root), by="system", now=timezone.now())


@pytest.fixture
def sent():
    """A job of three GPUs whose copy is in its member."""
    books.a_cluster()
    a_tree()
    books.apply(pytorch_job("llama"))
    books.cycle()
    books.sent()


def release() -> int:
    return charges.release(timezone.now())


def suspend() -> None:
    actions.suspend(books.job("llama"), by="test", now=timezone.now())


def a_pod() -> None:
    job = books.job("llama")
    names = {"namespace": "default", "name": "llama-0", "uid": str(uuid.uuid4())}
    place = {"cluster": Cluster.objects.get(), "job_uid": job.uid, "attempt": job.attempt}
    Pod.objects.create(**names, **place, phase="Running", created_at=timezone.now())


def test_it_frees_nothing_of_a_job_that_runs(sent):
    assert release() == 0 and books.used("root/a")[GPU] == 3


def test_it_frees_the_quota_of_an_ended_job_in_the_same_update(sent):
    books.end("llama")
    assert books.job("llama").state == Job.State.SUCCEEDED and books.job("llama").charge is None


def test_it_waits_for_a_suspended_copy_and_then_for_its_pods(sent):
    suspend()
    assert books.used("root/a")[GPU] == 3
    a_pod()
    Work.objects.update(state=Work.State.SUSPENDED)
    assert release() == 0
    Pod.objects.all().delete()
    assert release() == 1 and release() == 0 and books.used("root/a")[GPU] == 0


def test_it_frees_at_once_what_was_never_sent():
    books.a_cluster()
    a_tree()
    books.apply(pytorch_job("llama"))
    books.cycle()
    suspend()
    assert books.job("llama").charge is None


def test_it_finds_in_the_sweep_what_a_crash_left_charged(sent):
    suspend()
    books.gone("llama")
    sweep.run(timezone.now())
    assert books.job("llama").charge is None


def test_it_places_a_resumed_job_under_the_charge_it_still_has(sent):
    suspend()
    actions.resume(books.job("llama"), by="test", now=timezone.now())
    books.cycle()
    job = books.job("llama")
    assert (job.state, job.attempt) == (Job.State.PLACED, 2) and books.used("root/a")[GPU] == 3


steps = st.lists(
    st.tuples(st.sampled_from(["submit", "cycle", "end", "suspend", "resume", "gone", "delete"]), st.integers(0, 4)),
    max_size=25,
)


class TestLedger(TestCase):
    @settings(max_examples=15, deadline=None)
    @given(steps)
    def test_it_is_the_sum_of_those_who_may_hold_something_whatever_happens(self, stream):
        books.a_cluster(gpus=12)
        a_tree()
        for verb, number in stream:
            _do(verb, f"j{number}")
            _check()
        sweep.run(timezone.now())
        idle = Job.objects.filter(state__in=[*Job.FINISHED, Job.State.QUEUED, Job.State.SUSPENDED])
        for job in idle.filter(charge__isnull=False):
            assert Work.objects.filter(job_uid=job.uid).exclude(state__in=["Gone", "Kept"]).exists()


def _do(verb: str, name: str) -> None:
    job, now = Job.objects.filter(name=name).first(), timezone.now()
    if verb == "submit" and job is None:
        books.apply(pytorch_job(name))
    elif verb == "cycle":
        books.cycle()
        books.sent()
    elif job is None or job.deleting_at:
        return
    elif verb == "end" and job.state in Job.ON_MEMBER:
        books.end(name)
    elif verb == "gone" and job.state in (Job.State.SUSPENDED, Job.State.QUEUED):
        books.gone(name)
    elif verb == "delete":
        actions.delete(job, by="test", now=now)
    elif verb in ("suspend", "resume") and not actions.allowed(job, Action(verb)):
        getattr(actions, verb)(job, by="test", now=now)


def _check() -> None:
    """The ledger is the sum of the charges, it is within max, and whoever holds a place is charged for it."""
    held = Job.objects.filter(charge__isnull=False)
    assert books.used("root")[GPU] == books.used("root/a")[GPU] == 3 * held.count() <= 9
    assert not Job.objects.filter(state__in=Job.ON_MEMBER, charge__isnull=True).exists()
    assert not Job.objects.filter(state__in=Job.FINISHED, charge__isnull=False).exists()
