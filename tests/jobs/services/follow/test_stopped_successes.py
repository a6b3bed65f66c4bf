"""An exit 0 of a copy that the fleet had stopped is the end of that attempt, and the job's only if its own progress says so."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import Cluster, Event
from jobs.core.failover.rules import Outcome
from jobs.core.reasons import Code, Reason
from jobs.models import Attempt, Job, Work
from jobs.runtime import progress
from jobs.services.failover import failover
from jobs.services.follow.status import JobEventHandler
from jobs.services.scheduling import loop
from jobs.services.scheduling.decisions import preemption
from jobs.services.submission.changes import actions
from tests.jobs.services.resizing import elastic, runs
from tests.support import books
from tests.support.books import GPU
from tests.support.quotas import apply_tree, gpus, leaf

pytestmark = pytest.mark.django_db
UID = "copy-1"


@pytest.fixture(autouse=True)
def llama():
    books.a_cluster("north", 8)
    apply_tree(leaf("a", **gpus(8, 8)))
    books.apply(elastic("llama", 3, queue="a"))
    job = runs("llama")
    Work.objects.filter(job_uid=job.uid).update(object_uid=UID)
    return job


def succeeds(*, suspended=False, deleted=False, gone=False, **steps):
    """Its first copy, as the member has it, reports that it succeeded."""
    copy = books.copy("llama", {"conditions": [{"type": "Succeeded", "status": "True"}]})
    copy["metadata"] |= {"uid": UID, "labels": {**copy["metadata"]["labels"], "convoy.dev/attempt": "1"}}
    copy["spec"] = {**books.job("llama").manifest["spec"], "runPolicy": {"suspend": suspended}}
    if steps:
        report = progress.Progress(time.time(), **steps)
        copy["metadata"]["annotations"] = {progress.PROGRESS: report.written(UID)}
    if deleted:
        copy["metadata"]["deletionTimestamp"] = (timezone.now() + timedelta(seconds=1)).isoformat()
    handler, north = JobEventHandler(), Cluster.objects.get(name="north").pk
    (handler.on_delete if gone else handler.on_update)(north, books.resource("llama"), [copy], timezone.now())
    return books.job("llama").state


def preempt():
    preemption.evict_by_hand(books.job("llama"), "ada", timezone.now())
    Work.objects.update(state=Work.State.SUSPENDED)


def suspend():
    actions.suspend(books.job("llama"), by="ada", now=timezone.now())
    Work.objects.update(state=Work.State.SUSPENDED)


@pytest.mark.parametrize(("stop", "state"), [(preempt, Job.State.RECLAIMING), (suspend, Job.State.SUSPENDED)])
def test_it_goes_on_after_an_exit_0_that_answers_the_stop(stop, state):
    stop()
    assert [succeeds(suspended=True), succeeds(suspended=True)] == [state, state]
    assert Attempt.objects.get().outcome != "Succeeded"
    assert "it has reported no progress" in Event.objects.get(reason="StoppedByNotice").message


def test_a_preempted_job_that_exits_with_0_is_queued_again_and_starts_anew():
    preempt()
    succeeds(suspended=True)
    books.gone("llama")
    loop.advance_evictions(timezone.now() + timedelta(hours=1))
    books.cycle(timezone.now() + timedelta(hours=1))
    assert (books.job("llama").attempt, books.job("llama").finished, books.used("root/a")[GPU]) == (2, False, 3)


@pytest.mark.parametrize("stop", [preempt, suspend])
@pytest.mark.parametrize("steps", [{"step": 100, "total": 100}, {"percent": 100, "claimed_at": 1.0}])
def test_it_has_succeeded_where_its_progress_says_that_it_was_complete(stop, steps):
    stop()
    assert succeeds(suspended=True, **steps) == Job.State.SUCCEEDED


@pytest.mark.parametrize("stop", [preempt, suspend])
def test_it_has_succeeded_where_the_stop_had_not_reached_its_copy(stop):
    stop()
    assert succeeds() == Job.State.SUCCEEDED


@pytest.mark.parametrize("gone", [False, True])
def test_a_drained_job_is_not_ended_by_the_exit_of_the_copy_that_is_removed(gone):
    """Its next attempt is not sent yet: a success of the former one would take its place."""
    failover.leave(books.job("llama"), Outcome.LOST, Reason(Code.CLUSTER_LOST, "north is drained"), timezone.now())
    Work.objects.update(state=Work.State.WITHDRAWING)
    succeeds(deleted=True, gone=gone, step=64, total=3000)
    assert not books.job("llama").finished


def test_a_job_that_left_its_cluster_and_whose_copy_runs_on_there_has_succeeded():
    failover.leave(books.job("llama"), Outcome.LOST, Reason(Code.CLUSTER_LOST, "north is lost"), timezone.now())
    assert succeeds() == Job.State.SUCCEEDED


def test_it_has_succeeded_by_the_last_step_that_its_copy_carries_although_the_next_attempt_is_placed():
    now = timezone.now()
    failover.leave(books.job("llama"), Outcome.LOST, Reason(Code.CLUSTER_LOST, "north is drained"), now)
    Work.objects.update(state=Work.State.WITHDRAWING)
    books.a_cluster("south", 8)
    books.cycle(now + timedelta(hours=1))
    assert (books.job("llama").attempt, books.job("llama").state) == (2, Job.State.PLACED)
    assert succeeds(deleted=True, step=64, total=100) == Job.State.PLACED
    assert succeeds(deleted=True, step=100, total=100) == Job.State.SUCCEEDED
