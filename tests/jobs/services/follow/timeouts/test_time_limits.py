"""Jobs end by the clock: after the longest run and the longest wait of their queue, and at their deadline; no other does."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.errors import InvalidInput
from fleet.models import Event
from jobs.core.failover.rules import Outcome
from jobs.models import Attempt, Job, Work
from jobs.services.follow import sweep
from jobs.services.follow.timeouts import max_wait, time_limits
from jobs.services.lifecycle.accounting import charges
from jobs.services.submission import manifests, submit
from jobs.services.submission.changes import actions
from tests.support import books
from tests.support.books import GPU
from tests.support.quotas import PLENTY, apply_tree, gpus, leaf
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
DEADLINE = "convoy.dev/deadline"


@pytest.fixture(autouse=True)
def fleet():
    books.a_cluster("north", 8)


def tree(root: dict[str, str] | None = None, **attributes: str) -> None:
    own = {name.replace("_", "-"): value for name, value in attributes.items()}
    apply_tree(leaf("a", "default", **gpus(8, 8), attributes=own), leaf("b", **gpus(0, 8)), attributes=root)


def submitted(**fields) -> Job:
    books.apply(POLICY, pytorch_job("llama", workers=0, **fields))
    books.cycle()
    return books.job("llama")


def runs(**fields) -> Job:
    submitted(**fields)
    books.sent()
    books.report("llama", "Running")
    return books.job("llama")


def state_at(later: timedelta) -> str:
    time_limits.run(timezone.now() + later)
    max_wait.run(timezone.now() + later)
    return books.job("llama").state


def test_it_stops_a_job_that_runs_longer_than_its_queue_allows_and_frees_its_quota_when_its_pods_are_gone():
    tree(max_runtime="8h")
    runs(gpus=2)
    assert state_at(8 * HOUR - timedelta(minutes=1)) == Job.State.RUNNING
    assert state_at(8 * HOUR) == Job.State.FAILED
    job, attempt = books.job("llama"), Attempt.objects.get()
    assert job.reason["message"] == "ran for 8h, the max-runtime of its queue root/a"
    assert (job.reason["code"], attempt.outcome) == ("MaxRuntimeExceeded", Outcome.TIMED_OUT)
    assert Work.objects.get().state == Work.State.WITHDRAWING and books.used("root/a")[GPU] == 2
    books.gone("llama")
    charges.release(timezone.now())
    assert books.used("root/a").get(GPU, 0) == 0
    assert state_at(30 * HOUR) == Job.State.FAILED and Event.objects.filter(reason="MaxRuntimeExceeded").count() == 1


def test_the_run_counts_from_the_start_of_the_attempt():
    tree(max_runtime="1h")
    submitted()
    assert state_at(9 * HOUR) == Job.State.PLACED, "its pods do not run yet"
    books.sent()
    books.report("llama", "Running", now=timezone.now() + 9 * HOUR)
    assert state_at(10 * HOUR - timedelta(minutes=1)) == Job.State.RUNNING
    assert state_at(10 * HOUR) == Job.State.FAILED


@pytest.mark.parametrize(("root", "own", "hours"), [("2h", "3h", 2), ("3h", "2h", 2), ("2h", None, 2), (None, "2h", 2)])
def test_the_shortest_of_a_queue_and_those_above_it_counts(root, own, hours):
    tree({"max-runtime": root} if root else None, **({"max_runtime": own} if own else {}))
    runs()
    assert state_at(hours * HOUR - timedelta(minutes=1)) == Job.State.RUNNING
    assert state_at(hours * HOUR) == Job.State.FAILED


def test_a_job_ends_that_waits_longer_than_its_queue_allows_or_than_it_says_itself():
    tree(queue_timeout="2h")
    submitted(gpus=9)
    assert state_at(2 * HOUR - timedelta(minutes=1)) == Job.State.QUEUED
    books.apply(
        books.annotated("job-supervisor.kube-ai.io/max-wait-time", "90000", pytorch_job("llama", workers=0, gpus=9))
    )
    assert state_at(2 * HOUR) == Job.State.FAILED
    job = books.job("llama")
    assert job.reason["code"] == "MaxWaitExceeded"
    assert job.reason["message"].startswith(
        "waited 2h for quota and room, the queue-timeout of its queue root/a; the last"
    )


def deadline(text: str, **fields) -> str:
    return books.annotated(DEADLINE, text, pytorch_job("llama", workers=0, **fields))


@pytest.mark.parametrize("state", ["waits", "runs", "suspended"])
def test_a_job_ends_at_its_deadline_whatever_its_state(state):
    books.apply(POLICY, deadline("3h", gpus=9 if state == "waits" else 1))
    books.cycle()
    if state != "waits":
        books.sent()
        books.report("llama", "Running")
    if state == "suspended":
        actions.suspend(books.job("llama"), by="ada", now=timezone.now())
    before = books.job("llama").state
    assert state_at(3 * HOUR - timedelta(minutes=1)) == before
    sweep.run(timezone.now() + 3 * HOUR)
    job = books.job("llama")
    assert (job.state, job.reason["code"]) == (Job.State.FAILED, "DeadlineExceeded")
    assert not Attempt.objects.filter(ended_at=None).exists()
    books.cycle(timezone.now() + 4 * HOUR)
    assert books.job("llama").state == Job.State.FAILED


def test_a_deadline_is_a_moment_too_and_may_be_moved_while_the_job_runs():
    at = (timezone.now() + HOUR).isoformat(timespec="seconds")
    books.apply(POLICY, deadline(at))
    books.cycle()
    books.sent()
    books.report("llama", "Running")
    books.apply(deadline("2h"))
    assert state_at(HOUR + timedelta(minutes=1)) == Job.State.RUNNING
    books.apply(pytorch_job("llama", workers=0))
    assert state_at(9 * HOUR) == Job.State.RUNNING


@pytest.mark.parametrize(("text", "fault"), [
    ("soon", "must be a moment with a time zone"), ("2026-03-01T12:00:00", "must be a moment with a time zone"),
    ("2020-01-01T00:00:00Z", "must be in the future"), ("99999999d", "must be a moment"), ("0s", "must be in the future"),
])  # fmt: skip
def test_it_refuses_what_is_no_deadline(text, fault):
    with pytest.raises(InvalidInput, match=f"{DEADLINE} {fault}"):
        books.apply(POLICY, deadline(text))


def test_a_submission_warns_of_a_run_that_is_longer_than_it_may_be():
    tree(max_runtime="2h")
    [applied] = submit.apply(manifests.parse(deadline("1h", duration="3h").encode()), by="test", now=timezone.now())
    first, second = applied.warnings
    assert "declares to run 3h and is ended at its deadline" in first
    assert "declares to run 3h and is ended after 2h, the max-runtime of its queue root/a" in second


@pytest.mark.parametrize("text", ["0s", "ten", "-1h", "4000d", ""])
def test_the_tree_refuses_limits_that_are_no_durations(text):
    with pytest.raises(InvalidInput, match=r"max-runtime.*must be a duration such as .*, above 0 and at most 3650d"):
        tree(max_runtime=text)


def test_a_sweep_is_needed_only_where_something_may_become_due():
    apply_tree(leaf("a", "default", **gpus(8, 8)), total=PLENTY)
    runs()
    assert not time_limits.exist()
    tree(max_runtime="2h")
    assert time_limits.exist()
    books.end("llama")
    assert not time_limits.exist()
