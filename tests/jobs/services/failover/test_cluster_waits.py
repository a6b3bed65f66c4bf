"""A policy that waits: no second copy is started while one may run in a cluster that does not answer."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.models import Cluster, Event
from fleet.services.clusters import clusters
from jobs.core.policies import propagation
from jobs.core.reasons import Code
from jobs.models import Work
from jobs.services.dispatch import dispatcher
from jobs.services.follow import health
from jobs.services.lifecycle import works
from jobs.services.submission import actions
from tests.jobs.core.policies.builders import KNOWN
from tests.jobs.services import lost_cluster
from tests.support import books
from tests.support.world import POLICY

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


def test_a_policy_with_another_value_is_refused():
    body = yaml.safe_load(policy("Never"))
    faults = propagation.parse_propagation_policy(body, KNOWN).faults
    assert [fault.field for fault in faults] == [f"metadata.annotations.{UNREACHABLE}"]
