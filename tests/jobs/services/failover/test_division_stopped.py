"""Shares of a divided job that is suspended, evicted or waits: what they have done counts, and nothing of it is done again."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.core.members import marks
from fleet.models import Event, Hold, Pod
from jobs import snapshot
from jobs.core.failover.rules import Outcome
from jobs.models import Attempt, Job, Work
from jobs.runtime import progress
from jobs.services.failover import division
from jobs.services.follow import division_status, sweep
from jobs.services.follow.status import JobEventHandler
from jobs.services.lifecycle.accounting import charges
from jobs.services.scheduling import loop
from jobs.services.scheduling.cache import SchedulerCache
from jobs.services.scheduling.decisions import apply, lease
from jobs.services.submission.changes import actions
from tests.support import books, laws
from tests.support.division import LOST, SPREAD, report_share, sweep_job

pytestmark = pytest.mark.django_db
DONE = {"conditions": [{"type": "Complete", "status": "True"}], "completionTime": "2026-01-01T12:00:00Z"}


@pytest.fixture
def swept() -> Job:
    """On north with 4 pods and 6 completions (attempt 1), on south with 2 and 3 (attempt 2); both sent, and running."""
    for name, gpus in (("north", 5), ("south", 3), ("east", 2)):
        books.a_cluster(name, gpus=gpus)
    books.apply(SPREAD, sweep_job(pods=6, completions=9))
    assert books.cycle() == 1
    Work.objects.update(state=Work.State.APPLIED, applied_at=timezone.now())
    report_share(1, {"active": 4}, running=4)
    return report_share(2, {"active": 2}, running=2)


def suspend() -> Job:
    actions.suspend(Job.objects.get(), by="ada", now=timezone.now())
    return Job.objects.get()


def resume() -> Job:
    actions.resume(Job.objects.get(), by="ada", now=timezone.now())
    laws.remove_copies()
    return Job.objects.get()


def brief(job: Job) -> list[tuple]:
    return [(s["attempt"], s["cluster"], s["replicas"], s["completions"], s["state"]) for s in job.shares]


def placed() -> tuple[int, int]:
    """Pods and completions of the shares that were placed and not sent yet."""
    new = [share for share in Job.objects.get().shares if share["state"] == "Placed"]
    return sum(share["replicas"] for share in new), sum(share["completions"] for share in new)


def outcomes() -> dict[int, str]:
    return dict(Attempt.objects.values_list("number", "outcome"))


def test_it_has_succeeded_when_its_last_share_did_while_it_was_suspended(swept):
    report_share(1, {**DONE, "succeeded": 6})
    suspend()
    job = report_share(2, {**DONE, "succeeded": 3})
    assert job.state == "Succeeded"
    assert outcomes() == {1: "Succeeded", 2: "Succeeded"}
    assert Work.objects.get(attempt=2).state == "Applied", "its logs are gone"
    laws.terminal_holds_nothing()


def test_a_share_that_succeeded_while_its_job_was_suspended_is_not_run_again(swept):
    suspend()
    job = report_share(1, {**DONE, "succeeded": 6})
    assert (job.state, outcomes()) == ("Suspended", {1: "Succeeded", 2: "Suspended"})
    job = resume()
    assert brief(job) == [(1, "north", 4, 6, "Succeeded"), (2, "south", 0, 0, "Lost")]
    assert books.cycle() == 1
    assert placed() == (2, 3)


def test_what_shares_had_completed_before_a_suspension_counts_after_it(swept):
    report_share(1, {"active": 2, "succeeded": 4}, running=2)
    suspend()
    resume()
    (gang,) = snapshot.load_gangs(snapshot.waiting_jobs())
    assert (gang.division.replicas, gang.division.completions, gang.division.standing) == (5, 5, ())


def test_a_job_of_which_nothing_is_done_is_divided_anew_after_a_suspension(swept):
    suspend()
    resume()
    assert books.cycle() == 1
    assert brief(Job.objects.get()) == [(3, "north", 4, 6, "Placed"), (4, "south", 2, 3, "Placed")]


def test_a_success_that_is_reported_after_the_resume_is_believed_until_the_share_is_replaced(swept):
    suspend()
    resume()
    job = report_share(1, {**DONE, "succeeded": 6})
    assert (job.state, brief(job)[0]) == ("Queued", (1, "north", 4, 6, "Succeeded"))
    assert books.cycle() == 1
    assert not division_status.counts(Job.objects.get(), 2, succeeded=True)
    assert placed() == (2, 3)


def test_a_plan_made_before_a_share_succeeded_does_not_run_it_again(swept):
    suspend()
    resume()
    now = timezone.now()
    plan = SchedulerCache().refresh(now).run(now)
    report_share(1, {**DONE, "succeeded": 6})
    epoch = lease.acquire("one", now)
    assert plan.placed and apply.apply_plan(plan, epoch, now).placed == set()


def test_all_shares_that_succeeded_too_late_to_be_stopped_end_the_job_from_its_queue(swept):
    suspend()
    resume()
    report_share(1, {**DONE, "succeeded": 6})
    job = report_share(2, {**DONE, "succeeded": 3})
    assert (job.state, outcomes()) == ("Succeeded", {1: "Succeeded", 2: "Succeeded"})
    assert books.cycle() == 0


def test_a_running_copy_of_a_stopped_share_does_not_count(swept):
    suspend()
    assert not report_share(1, {"active": 4}, running=4).shares[0]["unhealthy_since"]
    job = resume()
    assert not division_status.counts(job, 1) and division_status.counts(job, 1, succeeded=True)
    assert brief(report_share(1, {"active": 4}, running=4))[0] == (1, "north", 0, 0, "Lost")


def test_a_suspended_job_gives_its_quota_back_although_one_share_had_succeeded(swept):
    Job.objects.update(charge={"nvidia.com/gpu": 6})
    suspend()
    report_share(1, {**DONE, "succeeded": 6})
    Work.objects.filter(state="Suspending").update(state="Suspended")
    charges.release(timezone.now())
    assert Job.objects.get().charge is None


def test_a_share_that_succeeds_while_its_job_makes_room_counts_and_the_rest_is_queued(swept):
    now = timezone.now()
    until = {"message": "reclaimed", "at": now.isoformat(), "until": (now + timedelta(minutes=1)).isoformat()}
    Job.objects.update(state="Reclaiming", charge={"nvidia.com/gpu": 6}, reclaim=until)
    Attempt.objects.update(ended_at=now, outcome=Outcome.RECLAIMED)
    Work.objects.update(state="Suspending")
    report_share(1, {**DONE, "succeeded": 6})
    Work.objects.update(state="Gone")
    loop.advance_evictions(now)
    job = Job.objects.get()
    assert (job.state, outcomes()) == ("Queued", {1: "Succeeded", 2: "Reclaimed"})
    assert brief(job) == [(1, "north", 4, 6, "Succeeded"), (2, "south", 0, 0, "Lost")]


def test_a_lost_share_that_had_completed_some_is_believed_when_it_returns_with_a_success(swept):
    report_share(2, {"active": 1, "succeeded": 2}, running=1)
    division.leave(Job.objects.get(), 2, Outcome.LOST, LOST, timezone.now())
    assert division_status.counts(Job.objects.get(), 2, succeeded=True)
    job = report_share(2, {**DONE, "succeeded": 3})
    assert (job.state, brief(job)[1]) == ("Running", (2, "south", 2, 3, "Succeeded"))
    assert not Hold.objects.filter(attempt=2, released_at__isnull=True).exists()


def test_a_share_whose_copy_was_deleted_after_all_its_pods_had_succeeded_has_succeeded(swept):
    for number in range(3):
        fields = {"job_uid": swept.uid, "attempt": 2, "phase": "Succeeded", "created_at": timezone.now()}
        cluster = Work.objects.get(attempt=2).cluster
        Pod.objects.create(cluster=cluster, namespace="default", name=f"p{number}", uid=f"p{number}", **fields)
    division.copy_vanished(Job.objects.get(), 2, timezone.now())
    assert (Job.objects.get().state, outcomes()[2]) == ("Running", "Succeeded")


def test_a_failed_share_whose_copy_is_cleaned_up_moves_as_a_failure(swept):
    report_share(2, {"conditions": [{"type": "Failed", "status": "True", "message": "BackoffLimitExceeded"}]})
    division.copy_vanished(Job.objects.get(), 2, timezone.now())
    assert Job.objects.get().state == "Backoff"
    sweep.run(timezone.now() + timedelta(seconds=1))
    assert outcomes()[2] == "Failed"


def test_a_share_whose_copy_vanished_moves_alone(swept):
    resource = books.resource("sweep")
    cluster = Work.objects.get(attempt=2).cluster_id
    handler = JobEventHandler()
    missing = [(uid, attempt) for uid, attempt in handler.expected(cluster, resource) if attempt == 2]
    handler.on_resync(cluster, resource, missing, timezone.now())
    job = Job.objects.get()
    assert (job.state, brief(job)) == ("Moving", [(1, "north", 4, 6, "Running"), (2, "south", 0, 0, "Lost")])
    assert (outcomes(), Work.objects.get(attempt=2).state) == ({1: "", 2: "Vanished"}, "Withdrawing")


def ends(attempt: int, *, suspended: bool, step: int) -> Job:
    """The member's copy of the share has succeeded, with this last step of 100."""
    job, work = Job.objects.get(), Work.objects.get(attempt=attempt)
    labels = {marks.JOB_UID: str(job.uid), marks.ATTEMPT: str(attempt)}
    notes = {progress.PROGRESS: progress.Progress(time.time(), step, 100).written("copy")}
    meta = {"name": "sweep", "namespace": "default", "uid": "copy", "labels": labels, "annotations": notes}
    Work.objects.filter(pk=work.pk).update(object_uid="copy")
    copy = {
        "metadata": meta,
        "spec": {**job.manifest["spec"], "suspend": suspended},
        "status": {**DONE, "succeeded": 6},
    }
    JobEventHandler().on_update(work.cluster_id, books.resource("sweep"), [copy], timezone.now())
    return Job.objects.get()


def test_a_share_that_exits_with_0_because_it_was_suspended_is_not_done(swept):
    suspend()
    Work.objects.update(state="Suspended")
    assert ends(1, suspended=True, step=64).shares[0]["state"] != "Succeeded"
    assert outcomes()[1] == "Suspended"
    assert "exit after it was asked to stop" in Event.objects.get(reason="StoppedByNotice").message
    assert ends(1, suspended=True, step=100).shares[0]["state"] == "Succeeded", "its steps are all done"


def test_a_share_that_the_suspension_had_not_reached_is_done(swept):
    suspend()
    assert ends(1, suspended=False, step=64).shares[0]["state"] == "Succeeded"


def test_a_share_that_is_to_run_is_done_however_its_copy_looks(swept):
    assert ends(1, suspended=True, step=64).shares[0]["state"] == "Succeeded"
