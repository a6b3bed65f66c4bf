"""A job that waits for quota and room longer than it may ends, whichever way it came to wait; no other does."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.models import Event
from jobs.core.failover.lifecycle import MAX_WAIT, max_wait_s
from jobs.models import Attempt, Job
from jobs.services.follow import sweep
from jobs.services.follow.timeouts import max_wait
from jobs.services.scheduling.decisions import preemption
from jobs.services.submission.changes import actions
from tests.support import books
from tests.support.books import GPU
from tests.support.quotas import apply_tree, gpus, leaf
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db
LIMIT_S = 600


def limited(limit: object = LIMIT_S, *, gpus: int = 1) -> str:
    body = yaml.safe_load(pytorch_job("llama", workers=0, gpus=gpus))
    body["metadata"] |= {
        "annotations": {MAX_WAIT: str(limit)},
        "labels": {"quota.scheduling.alibabacloud.com/name": "a"},
    }
    return yaml.safe_dump(body)


@pytest.fixture(autouse=True)
def fleet():
    books.a_cluster("north", 8)
    apply_tree(leaf("a", **gpus(8, 8)))


def state_after(seconds: float) -> str:
    max_wait.run(timezone.now() + timedelta(seconds=seconds))
    return books.job("llama").state


def waits(**about) -> None:
    books.apply(POLICY, limited(gpus=9, **about))
    books.cycle()


def test_it_ends_a_job_that_found_no_room_in_time_and_says_why_it_had_none():
    waits()
    since = books.job("llama").queued_at
    for seconds, state in ((LIMIT_S - 2, Job.State.QUEUED), (LIMIT_S + 1, Job.State.FAILED)):
        max_wait.run(since + timedelta(seconds=seconds))
        assert books.job("llama").state == state
    job = books.job("llama")
    assert (job.reason["code"], job.charge) == ("MaxWaitExceeded", None)
    assert "waited 600 s" in job.reason["message"] and "9" in job.reason["message"]
    assert Event.objects.filter(reason="MaxWaitExceeded").count() == 1
    assert max_wait.run(timezone.now() + timedelta(days=1)) == 0, "once"
    books.cycle(timezone.now() + timedelta(days=1))
    assert books.job("llama").state == Job.State.FAILED


def test_it_asks_no_more_for_jobs_with_many_limits(django_assert_max_num_queries):
    for number in range(10):
        books.apply(pytorch_job(f"job-{number}"))
        Job.objects.filter(name=f"job-{number}").update(max_wait_s=1000 + number)
    with django_assert_max_num_queries(4):
        assert max_wait.run(timezone.now()) == 0


def test_it_is_part_of_the_sweep():
    waits()
    sweep.run(timezone.now() + timedelta(seconds=LIMIT_S + 1))
    assert books.job("llama").state == Job.State.FAILED


@pytest.mark.parametrize("limit", ["", "0", "-5", "ten", "6e2", "٦٠٠", "1" * 30])
def test_it_lets_a_job_wait_for_ever_whose_limit_is_none(limit):
    waits(limit=limit)
    assert state_after(10 * 86_400) == Job.State.QUEUED


def test_it_reads_seconds_with_and_without_their_unit():
    notes = [{MAX_WAIT: text} for text in ("600", "600s", "9" * 11)]
    read = [max_wait_s({"metadata": {"annotations": note}}) for note in notes]
    assert read == [600, 600, 10 * 365 * 86_400] and max_wait_s({"metadata": {}}) is None


def runs() -> Job:
    books.apply(POLICY, limited())
    books.cycle()
    books.sent()
    books.report("llama", "Running")
    return books.job("llama")


def test_it_leaves_a_job_alone_that_runs_or_is_suspended():
    job = runs()
    assert state_after(LIMIT_S * 2) == Job.State.RUNNING
    actions.suspend(job, by="alice", now=timezone.now())
    assert state_after(LIMIT_S * 2) == Job.State.SUSPENDED


def test_the_time_counts_anew_for_a_job_whose_place_was_taken_back():
    job, later = runs(), timezone.now() + timedelta(hours=5)
    preemption.evict_reclaimed(job, "n1 was reclaimed", later)
    books.gone("llama")
    preemption.advance(later + timedelta(seconds=40))
    ended = Attempt.objects.get().ended_at
    assert (books.job("llama").state, ended) == (Job.State.QUEUED, later)
    since = max(max_wait._waits_since(books.job("llama")))
    assert later < since <= later + timedelta(seconds=40)
    assert max_wait.run(since + timedelta(seconds=LIMIT_S - 1)) == 0
    assert max_wait.run(since + timedelta(seconds=LIMIT_S)) == 1
    assert books.used("root/a").get(GPU, 0) == 0


def test_the_time_counts_anew_for_a_job_that_is_resumed():
    waits()
    later = timezone.now() + timedelta(hours=5)
    actions.suspend(books.job("llama"), by="alice", now=timezone.now())
    actions.resume(books.job("llama"), by="alice", now=later)
    assert max_wait.run(later + timedelta(seconds=LIMIT_S - 1)) == 0
    assert max_wait.run(later + timedelta(seconds=LIMIT_S)) == 1


def test_a_changed_limit_holds_for_a_job_that_waits_already():
    waits()
    books.apply(limited(60, gpus=9))
    assert state_after(61) == Job.State.FAILED
