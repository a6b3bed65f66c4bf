"""The steps of a reclaim, each taken by hand: what is written, what the sweep finds, and what a late report still changes."""

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count

import pytest
from django.utils import timezone

from fleet.models import Cluster
from fleet.services.operations import lease_requests
from jobs.models import Job, Work
from jobs.services.follow import sweep
from jobs.services.lifecycle import cycle_requests
from jobs.services.scheduling import loop
from jobs.services.scheduling.decisions import preemption
from jobs.services.submission.changes import actions
from quotas.models import Queue
from quotas.services import queues, trees
from tests.jobs.services.scheduling.builders import WHOLE, job
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import GPU, team

pytestmark = pytest.mark.django_db


@pytest.fixture
def claimed():
    """Two of b's jobs fill everything, and one of a's has just come, which was promised half."""
    books.a_cluster(gpus=6)
    root = quota("root", WHOLE, WHOLE, team("a", 3, 6), team("b", 3, 6))
    trees.apply(manifest(root), by="system", now=timezone.now())
    books.apply(job("old", "b"), job("young", "b"))
    books.cycle()
    books.sent()
    Job.objects.filter(name="old").update(state="Running", started_at=timezone.now() - timedelta(hours=1))
    Job.objects.filter(name="young").update(state="Running", started_at=timezone.now())
    books.apply(job("mine", "a"))


@pytest.fixture
def ordered(claimed):
    """The younger leaves for one of a's."""
    books.cycle()
    assert books.job("young").state == Job.State.RECLAIMING


@pytest.mark.parametrize("above", [Queue.State.OPEN, Queue.State.HELD])
def test_it_takes_back_in_the_next_cycle_what_runs_in_a_queue_that_is_stopped_whatever_is_above_it(claimed, above):
    books.cycle()
    for path, state in (("root", above), ("root/b", Queue.State.STOPPED)):
        queues.set_state(Queue.objects.get(path=path), state, by="ada", now=timezone.now())
    books.cycle()
    assert {books.job(name).state for name in ("old", "young")} == {Job.State.RECLAIMING}


def meanwhile(monkeypatch, *deeds: Callable[[], None]) -> None:
    """While a cycle plans, something is asked for: the first deed in the first cycle, the second in the next."""
    asked, left, counted = count(), list(deeds), cycle_requests.requests

    def requests() -> int:
        if next(asked) and left:
            left.pop(0)()
            lease_requests.add(cycle_requests.LEASE)
        return counted()

    monkeypatch.setattr(cycle_requests, "requests", requests)


def test_it_stops_nobody_where_what_has_ended_meanwhile_is_room_enough(claimed, monkeypatch):
    meanwhile(monkeypatch, lambda: books.end("old"))
    assert books.cycle() == 1
    assert books.job("mine").state == Job.State.PLACED and books.job("young").state == Job.State.RUNNING


def test_it_stops_somebody_in_the_third_cycle_however_much_is_asked_for_meanwhile(claimed, monkeypatch):
    states = []
    meanwhile(monkeypatch, *[lambda: states.append(books.job("young").state)] * 6)
    books.cycle()
    assert states[:3] == ["Running", "Running", "Reclaiming"]
    assert books.job("mine").reason["code"] == "WaitingForReclaim"


def work() -> Work:
    return Work.objects.get(job_uid=books.job("young").uid)


def test_it_suspends_the_copy_first_and_says_until_when(ordered):
    young, mine = books.job("young"), books.job("mine")
    assert work().state == Work.State.SUSPENDING and young.charge[GPU] == 3
    assert young.reason["code"] == "Reclaimed" and young.reclaim["by"] == "default/mine"
    assert mine.reason["code"] == "WaitingForReclaim" and mine.reason["quota"]["from_jobs"] == ["default/young"]
    assert mine.reason["quota"]["until"] == young.reclaim["until"]


def test_it_orders_nobody_else_while_that_is_on_its_way(ordered):
    for _ in range(3):
        books.cycle()
    assert books.job("old").state == Job.State.RUNNING and books.job("mine").reason["code"] == "WaitingForReclaim"


def test_it_removes_the_copy_once_its_pods_are_gone_and_queues_the_job_again(ordered):
    Work.objects.filter(pk=work().pk).update(state=Work.State.SUSPENDED)
    loop.advance_evictions(timezone.now())
    assert work().state == Work.State.WITHDRAWING and books.job("young").charge is not None
    books.gone("young")
    loop.advance_evictions(timezone.now())
    young = books.job("young")
    assert (young.state, young.charge, young.cluster) == (Job.State.QUEUED, None, None)
    books.cycle()
    assert books.job("mine").state == Job.State.PLACED and books.job("young").state == Job.State.QUEUED


def test_it_gives_the_copy_no_more_than_its_time(ordered):
    soon = timezone.now() + timedelta(seconds=10)
    preemption.advance(soon)
    assert work().state == Work.State.SUSPENDING
    preemption.advance(soon + timedelta(seconds=51))
    assert work().state == Work.State.WITHDRAWING


def test_the_sweep_finds_every_step_that_a_crash_left_out(ordered):
    Work.objects.filter(pk=work().pk).update(state=Work.State.SUSPENDED)
    sweep.run(timezone.now())
    assert work().state == Work.State.WITHDRAWING
    books.gone("young")
    sweep.run(timezone.now())
    assert books.job("young").state == Job.State.QUEUED


def test_it_keeps_what_a_late_victim_gave_back_for_its_claimant(ordered):
    young = books.job("young")
    order = {**young.reclaim, "until": (timezone.now() - timedelta(minutes=10)).isoformat()}
    Job.objects.filter(pk=young.pk).update(reclaim=order)
    Job.objects.filter(name="mine").update(priority=-9)
    books.gone("young")
    loop.advance_evictions(timezone.now())
    assert datetime.fromisoformat(books.job("young").reclaim["until"]) > timezone.now() - timedelta(minutes=1)
    books.apply(job("third", "b", **{"convoy.dev/priority": "9"}))
    books.cycle()
    assert books.job("mine").state == Job.State.PLACED
    assert {books.job(name).state for name in ("young", "third")} == {Job.State.QUEUED}


def test_it_does_not_wait_for_a_cluster_that_cannot_be_reached(ordered):
    Cluster.objects.update(state=Cluster.State.UNKNOWN)
    preemption.advance(timezone.now() + timedelta(seconds=61))
    assert books.job("young").state == Job.State.QUEUED and books.job("young").charge is None


@pytest.mark.parametrize("state", ["Applied", "Suspending", "Suspended"])
def test_a_victim_that_succeeds_in_time_has_succeeded(ordered, state):
    Work.objects.filter(name="young").update(state=state)
    books.end("young")
    assert books.job("young").state == "Succeeded" and books.used("root/b")[GPU] == 3
    attempt = books.job("young").attempts.get()
    assert (attempt.outcome, attempt.ended_at is not None) == ("Succeeded", True)
    assert Work.objects.get(name="young").state == "Applied"


def test_a_person_may_suspend_or_delete_a_victim_meanwhile(ordered):
    actions.suspend(books.job("young"), by="test", now=timezone.now())
    books.gone("young")
    sweep.run(timezone.now())
    assert books.job("young").state == Job.State.SUSPENDED and books.job("young").charge is None
    actions.delete(books.job("young"), by="test", now=timezone.now())
    assert not Job.objects.filter(name="young").exists()


def test_it_brings_the_victim_back_when_the_claimant_has_gone_away(ordered):
    actions.delete(books.job("mine"), by="test", now=timezone.now())
    books.gone("young")
    sweep.run(timezone.now())
    books.cycle()
    assert books.job("young").state == Job.State.PLACED and books.job("young").attempt == 2
