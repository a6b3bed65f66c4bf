"""A policy that waits: no second copy is started while one may run in a cluster that does not answer."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.models import Cluster, Event
from fleet.services.clusters import clusters
from jobs.core.life.works import WorkEvent
from jobs.core.policies import propagation
from jobs.core.reasons import Code
from jobs.models import Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.follow.timeouts import health
from jobs.services.inspect import departures
from jobs.services.lifecycle import works
from jobs.services.submission.changes import actions
from tests.jobs.core.policies.builders import KNOWN
from tests.jobs.services import lost_cluster
from tests.support import books
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
UNREACHABLE = "convoy.dev/unreachable-cluster"


def policy(value: str) -> str:
    body = yaml.safe_load(POLICY)
    body["metadata"]["annotations"] = {UNREACHABLE: value}
    return yaml.safe_dump(body)


def check(after_s: float = 3600) -> None:
    health.check(timezone.now() + timedelta(seconds=after_s))


def lose() -> None:
    lost_cluster.running(policy("Wait"))
    books.a_cluster("south")
    lost_cluster.north(Cluster.State.UNKNOWN)


def test_a_job_that_waits_stays_and_says_so_once():
    lose()
    for seconds in (3600, 3700):
        check(seconds)
    job = books.job("llama")
    assert (job.state, job.attempt, str(job.cluster)) == ("Running", 1, "north")
    assert job.reason["code"] == Code.WAITING_FOR_CLUSTER and "draining or detaching north" in job.reason["message"]
    assert Event.objects.get(reason="WaitsForCluster").count == 1


@pytest.fixture(params=["Wait", "Fence"])
def placed(request):
    """The work of a job that was placed on north, which then fell silent."""
    lost_cluster.a_fleet()
    books.apply(policy(request.param), pytorch_job("llama"))
    lost_cluster.cycle()
    books.a_cluster("south")
    lost_cluster.north(Cluster.State.UNKNOWN)
    Cluster.objects.filter(name="north").update(watched_since=timezone.now(), watched_until=timezone.now())
    return Work.objects.get()


def test_a_job_that_was_never_sent_is_placed_elsewhere(placed):
    assert list(departures.of_lost("north").leaving) == [books.job("llama").pk]
    check()
    assert Work.objects.get().state == "Gone"
    lost_cluster.cycle()
    job = books.job("llama")
    assert (job.state, job.attempt, str(job.cluster)) == ("Placed", 2, "south")
    assert works.older_copy(Work.objects.get(attempt=2), job, may_run=lambda copy: True) is None


def test_nothing_is_sent_to_a_cluster_that_is_known_to_be_silent(placed):
    dispatcher.push(placed.pk, timezone.now)
    assert Work.objects.get().state == "Pending" and "north does not answer" in books.job("llama").reason["message"]
    check()
    assert books.job("llama").state == "Moving"


def test_a_job_stays_while_a_worker_may_be_sending_it(placed):
    mine = works.claim(placed.pk, timezone.now())
    check()
    assert (books.job("llama").state, str(books.job("llama").cluster)) == ("Placed", "north")
    assert works.advance(mine, WorkEvent.BEGUN)
    works.give_back(mine, timezone.now(), message="no answer")
    check()
    assert (books.job("llama").state, str(books.job("llama").cluster)) == ("Placed", "north")


def test_a_job_that_is_about_to_leave_stays_if_its_copy_is_sent_first(placed, monkeypatch):
    """Between the look at all jobs and the transaction in which they leave."""
    leave = health._leave_lost

    def send_first(*about):
        assert works.advance(works.claim(placed.pk, timezone.now()), WorkEvent.BEGUN)
        return leave(*about)

    monkeypatch.setattr(health, "_leave_lost", send_first)
    check()
    assert (books.job("llama").state, Work.objects.get().state) == ("Placed", "Sending")


def test_a_worker_that_comes_too_late_sends_nothing(placed):
    late = works.claim(placed.pk, timezone.now())
    works.give_back(late, timezone.now())
    check()
    assert books.job("llama").state == "Moving"
    assert not works.advance(late, WorkEvent.BEGUN)


@pytest.mark.parametrize("value", ["Replace", ""])
def test_a_job_is_replaced_by_default(value):
    lost_cluster.running(policy(value) if value else POLICY)
    lost_cluster.north(Cluster.State.UNKNOWN)
    check()
    assert books.job("llama").state == "Moving"


def test_it_goes_on_without_the_reason_when_the_cluster_answers():
    lose()
    check()
    lost_cluster.north(Cluster.State.READY)
    check()
    job = books.job("llama")
    assert (job.state, job.attempt, job.reason, job.reason_code) == ("Running", 1, None, None)


def test_draining_the_cluster_moves_it():
    lose()
    check()
    clusters.drain(Cluster.objects.get(name="north"), by="test", now=timezone.now())
    check()
    assert books.job("llama").state == "Moving"
    lost_cluster.cycle()
    assert works.older_copy(Work.objects.get(attempt=2), books.job("llama"), may_run=lambda copy: True) is None


def test_a_resumed_job_is_not_sent_while_its_former_copy_may_run():
    lose()
    for act in (actions.suspend, actions.resume):
        act(books.job("llama"), by="test", now=timezone.now())
    lost_cluster.cycle()
    job = books.job("llama")
    assert (job.attempt, str(job.cluster)) == (2, "south")
    dispatcher.push(Work.objects.get(attempt=2).pk, timezone.now)
    assert Work.objects.get(attempt=2).state == "Pending"
    reason = books.job("llama").reason
    assert reason["code"] == Code.WAITING_FOR_PURGE and "north" in reason["message"] and "Unknown" in reason["message"]


def test_an_older_copy_in_the_same_cluster_is_waited_for_whatever_the_policy_says():
    """To be sent, the next attempt needs that cluster to answer, and then the older one runs."""
    lost_cluster.running(policy("Replace"))
    lost_cluster.north(Cluster.State.UNKNOWN)
    Job.objects.update(attempt=2)
    older = Work.objects.get()
    newer = Work(job_uid=older.job_uid, attempt=2, cluster_id=older.cluster_id)
    assert works.older_copy(newer, books.job("llama"), may_run=lambda copy: False) == older


def test_a_policy_with_another_value_is_refused():
    body = yaml.safe_load(policy("Never"))
    faults = propagation.parse_propagation_policy(body, KNOWN).faults
    assert [fault.field for fault in faults] == [f"metadata.annotations.{UNREACHABLE}"]
