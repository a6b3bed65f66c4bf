"""What a copy achieved is believed though the job was just stopped; nobody is blamed for a copy that was never asked for."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import Cluster
from jobs.core.failover.rules import Outcome
from jobs.core.reasons import Code, Reason
from jobs.models import Attempt, Work
from jobs.services.dispatch import dispatcher
from jobs.services.failover import failover
from jobs.services.follow.status import JobEventHandler
from jobs.services.follow.timeouts import health
from jobs.services.lifecycle import works
from jobs.services.submission.changes import actions
from tests.jobs.services.lost_cluster import THROUGH_QUEUE, cycle, north, running
from tests.support import books, laws
from tests.support.books import GPU
from tests.support.world import POLICY

pytestmark = pytest.mark.django_db


@pytest.fixture(params=[THROUGH_QUEUE, POLICY], ids=["queue", "plain"])
def policy(request):
    return request.param


def suspend() -> None:
    actions.suspend(books.job("llama"), by="ada", now=timezone.now())


def resume() -> None:
    actions.resume(books.job("llama"), by="ada", now=timezone.now())


def ended_once() -> bool:
    laws.terminal_holds_nothing()
    assert Attempt.objects.get().outcome == "Succeeded" and books.used("root/a")[GPU] == 0
    return books.job("llama").state == "Succeeded"


@pytest.mark.parametrize("state", ["Suspending", "Suspended"])
def test_it_has_succeeded_though_it_was_suspended_a_moment_too_late(policy, state):
    running(policy)
    suspend()
    Work.objects.update(state=state)
    books.report("llama", "Succeeded")
    assert ended_once() and Work.objects.get().state == "Applied"
    cycle()
    assert books.job("llama").attempt == 1


def test_a_worker_that_died_while_it_suspended_a_copy_that_had_succeeded_leaves_no_claim(policy):
    running(policy)
    suspend()
    assert works.claim(Work.objects.get().pk, timezone.now()) is not None
    books.report("llama", "Succeeded")
    work = Work.objects.get()
    assert (work.state, work.claim, work.claimed_at) == ("Applied", "", None)


def test_it_has_succeeded_though_it_was_suspended_on_a_cluster_that_was_lost(policy):
    running(policy)
    north(Cluster.State.UNKNOWN)
    suspend()
    resume()
    north(Cluster.State.READY)
    books.report("llama", "Succeeded", on=Cluster.objects.get())
    assert ended_once()
    laws.remove_copies()
    assert ended_once()


@pytest.mark.parametrize("condition", ["Running", "Failed", "Suspended"])
def test_it_stays_suspended_whatever_else_its_copy_reports(policy, condition):
    running(policy)
    suspend()
    books.report("llama", condition)
    assert books.job("llama").state == "Suspended"


def test_nobody_is_blamed_for_a_copy_that_waits_until_an_older_one_is_gone(policy, settings):
    """Else a cluster whose credentials have expired ends jobs on all the others."""
    running(policy)
    Cluster.objects.update(state=Cluster.State.NOT_READY, state_reason="CredentialsRefused")
    books.a_cluster("south", gpus=3)
    suspend()
    resume()
    Work.objects.update(state="Withdrawing")
    assert cycle() == 1
    dispatcher.push(Work.objects.get(attempt=2).pk, timezone.now)
    later = timezone.now() + timedelta(seconds=10 * settings.CONVOY_FAILOVER.start_timeout_s)
    assert health.check(later) == 0
    assert books.job("llama").reason["code"] == "WaitingForPurge"
    Work.objects.filter(attempt=1).update(state="Gone")
    Work.objects.filter(attempt=2).update(state="Applied", applied_at=later)
    assert health.check(later + timedelta(seconds=1)) == 0
    assert health.check(later + timedelta(seconds=2 * settings.CONVOY_FAILOVER.start_timeout_s)) == 1


def test_it_has_succeeded_though_its_last_report_comes_after_its_copy_was_removed(policy):
    """By another client, so that no worker saw the copy before."""
    running(policy)
    suspend()
    resume()
    done = books.copy("llama", {"conditions": [{"type": "Succeeded", "status": "True"}]})
    Work.objects.update(state="Gone")
    JobEventHandler().on_delete(Cluster.objects.get().pk, books.resource("llama"), [done], timezone.now())
    assert ended_once()


def test_a_success_does_not_count_once_the_next_attempt_is_being_sent(policy):
    """That one may run already: it is believed alone."""
    running(policy)
    suspend()
    resume()
    done = books.copy("llama", {"conditions": [{"type": "Succeeded", "status": "True"}]})
    laws.remove_copies()
    assert cycle() == 1
    Work.objects.filter(attempt=2).update(state="Sending")
    JobEventHandler().on_delete(Cluster.objects.get().pk, books.resource("llama"), [done], timezone.now())
    job = books.job("llama")
    assert (job.state, job.attempt, Work.objects.get(attempt=2).state) == ("Placed", 2, "Sending")


def test_an_attempt_that_goes_on_has_no_cause_of_failure(policy):
    running(policy)
    north(Cluster.State.UNKNOWN)
    failover.leave(books.job("llama"), Outcome.LOST, Reason(Code.CLUSTER_LOST, "gone"), timezone.now())
    assert Attempt.objects.get().cause == "Infrastructure"
    north(Cluster.State.READY)
    books.report("llama", "Running", on=Cluster.objects.get())
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.cause, attempt.evidence) == ("", "", None)
