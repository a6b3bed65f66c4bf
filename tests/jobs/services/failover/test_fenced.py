"""A policy that fences: the agent stops the copy in a member that is cut off, and only then is another one started."""

from datetime import timedelta

import pytest
import yaml

from fleet.core.members import fence
from fleet.kube.resources import LEASES, PYTORCH_JOBS
from fleet.models import Cluster, Event
from fleet.services.clusters import clusters
from jobs.core.policies.unreachable import UNREACHABLE
from jobs.core.reasons import Code
from jobs.models import Attempt, Job, Work
from jobs.services.failover import returns
from jobs.services.follow.timeouts import health
from jobs.services.inspect import departures
from jobs.services.lifecycle.copies import other_copies
from tests.jobs.services import lost_cluster
from tests.support import books
from tests.support.cut_off import cut_off
from tests.support.passive import passive_member
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
NAME = "j" * 53
PATH = PYTORCH_JOBS.path("default", NAME)
STOPPED_BY = 120 + 60 + 30 + 30
"""After the last renewal: its duration, half of it for an agent that starts anew, the margin, and the pods' grace period."""


@pytest.fixture
def north(tmp_path):
    with cut_off(tmp_path) as made:
        yield made


@pytest.fixture
def south(tmp_path, north):
    with passive_member(tmp_path, "south") as made:
        yield made


def policy(value: str = "Fence") -> str:
    body = yaml.safe_load(POLICY)
    body["metadata"]["annotations"] = {UNREACHABLE: value}
    return yaml.safe_dump(body)


def running(north, value: str = "Fence") -> Job:
    """A job on north, the only cluster yet."""
    books.apply(policy(value), pytorch_job(NAME))
    lost_cluster.cycle()
    north.member.work(PYTORCH_JOBS, north.now)
    books.report(NAME, "Running", now=north.now)
    assert (job().state, str(job().cluster)) == ("Running", "north")
    return job()


def job() -> Job:
    return Job.objects.select_related("cluster", "policy").get(name=NAME)


def suspended(north) -> bool:
    return bool((north.client.get(PATH)["spec"].get("runPolicy") or {}).get("suspend"))


def check(north) -> str:
    """The checks of a sweep, and a cycle; returns the job's state and where it is."""
    Cluster.objects.update(looked_at=None)
    health.check(north.now)
    lost_cluster.cycle()
    return f"{job().state} {job().cluster or ''}".strip()


def test_the_copy_is_stopped_and_only_then_is_the_next_one_started(north, south):
    running(north)
    last = (north.known().renewed_at - north.began).total_seconds()
    north.state(Cluster.State.UNKNOWN)
    north.to(last + 119)
    north.agent.look()
    assert not suspended(north) and check(north) == "Running north"
    reason = job().reason
    assert (
        reason["code"] == Code.WAITING_FOR_CLUSTER
        and f"{north.known().until + timedelta(seconds=120):%H:%M:%S}" in reason["message"]
    )
    north.to(last + 126)
    north.agent.look()
    assert suspended(north) and fence.STOPPED in north.client.get(PATH)["metadata"]["annotations"]
    north.to(last + STOPPED_BY - 1)
    assert check(north) == "Running north"
    north.to(last + STOPPED_BY + 1)
    assert check(north) == "Placed south"
    south.work(PYTORCH_JOBS, north.now)
    assert [item["metadata"]["name"] for item in south.items(PYTORCH_JOBS)] == [NAME]
    assert not Event.objects.filter(reason="TwoCopiesPossible") and other_copies.beside(job()) == []


def test_when_the_member_returns_its_copy_is_removed_and_not_resumed(north, south):
    test_the_copy_is_stopped_and_only_then_is_the_next_one_started(north, south)
    north.state(Cluster.State.READY)
    north.renew()
    north.agent.look()
    returns.adopt(north.now)
    north.member.report(PYTORCH_JOBS)
    health.check(north.now)
    north.member.work(PYTORCH_JOBS, north.now)
    assert not north.member.items(PYTORCH_JOBS) and (job().attempt, str(job().cluster)) == (2, "south")


def test_a_copy_that_must_have_stopped_is_not_counted_on_when_its_member_returns(north):
    """No other cluster has room: the job waits. Whether the agent did what it promised is for the copy's report to say."""
    running(north)
    north.state(Cluster.State.UNKNOWN)
    north.to(north.s + STOPPED_BY + 61)
    assert check(north) == "Moving"
    north.state(Cluster.State.READY)
    assert returns.adopt(north.now) == [] and job().state == "Moving"
    books.report(NAME, "Running", now=north.now)
    assert job().state == "Running"


def test_a_copy_that_was_seen_stopped_is_not_resumed_by_a_report_from_before(north):
    running(north)
    north.state(Cluster.State.UNKNOWN)
    north.to(north.s + STOPPED_BY + 61)
    assert check(north) == "Moving"
    north.agent.look()
    north.state(Cluster.State.READY)
    north.member.report(PYTORCH_JOBS)
    assert Work.objects.get().stopped_at is not None
    books.report(NAME, "Running", now=north.now)
    assert job().state == "Moving"


def test_a_copy_that_was_stopped_although_the_member_was_not_lost_gets_another_attempt(north):
    """The fleet itself was away, or its renewals were refused."""
    running(north)
    north.to(north.s + 130)
    north.agent.look()
    assert suspended(north)
    for _ in range(2):
        north.member.report(PYTORCH_JOBS)
        health.check(north.now)
    assert job().state == "Moving" and "the agent in north stopped the copy" in job().reason["message"]
    north.member.work(PYTORCH_JOBS, north.now)
    lost_cluster.cycle()
    north.member.work(PYTORCH_JOBS, north.now)
    assert job().attempt == 2 and not suspended(north)
    assert Attempt.objects.get(number=1).outcome == "Lost"
    assert not Work.objects.get(attempt=2).fenced, (
        "no agent has answered since: this copy is not stopped again and again"
    )
    north.agent.look()
    assert not suspended(north)


def test_without_an_agent_it_waits_and_says_so(north, south):
    north.live(400, agent=False)
    running(north)
    assert not Work.objects.get().fenced
    assert fence.LABEL not in north.client.get(PATH)["metadata"]["labels"]
    north.state(Cluster.State.UNKNOWN)
    north.to(5000)
    assert check(north) == "Running north"
    assert "no agent in north is known to stop it" in job().reason["message"]


def test_an_agent_that_fell_silent_before_the_cut_is_not_relied_on(north, south):
    running(north)
    north.live(300, agent=False)
    assert Event.objects.filter(reason="AgentSilent").exists()
    north.state(Cluster.State.UNKNOWN)
    north.to(5000)
    assert check(north) == "Running north"


def test_a_copy_that_was_sent_under_another_policy_is_not_taken_for_fenced(north, south):
    running(north, "Replace")
    books.apply(policy())
    north.state(Cluster.State.UNKNOWN)
    north.to(5000)
    assert check(north) == "Running north"


def test_what_a_manifest_says_of_it_is_neither_sent_nor_believed(north):
    body = yaml.safe_load(pytorch_job(NAME))
    body["metadata"] |= {"labels": {fence.LABEL: fence.DEPENDS}, "annotations": {fence.STOPPED: "now"}}
    books.apply(yaml.safe_dump(body))
    lost_cluster.cycle()
    north.member.work(PYTORCH_JOBS, north.now)
    metadata = north.client.get(PATH)["metadata"]
    assert fence.LABEL not in metadata["labels"] and fence.STOPPED not in metadata.get("annotations", {})
    north.client.merge_patch(PATH, {"metadata": {"annotations": {fence.STOPPED: "now"}}})
    north.member.report(PYTORCH_JOBS)
    assert health.check(north.now) == 0 and job().attempt == 1 and Work.objects.get().stopped_at is None


def test_draining_moves_it_before(north, south):
    running(north)
    north.state(Cluster.State.UNKNOWN)
    clusters.drain(Cluster.objects.get(name="north"), by="test", now=north.now)
    north.to(165)
    assert check(north) == "Placed south"


def test_a_lost_cluster_is_foretold_as_it_would_be(north):
    running(north)
    lost = departures.of_lost("north")
    assert list(lost.leaving) == [job().pk] and not lost.staying
    north.client.delete(LEASES.path(fence.NAMESPACE, fence.NAME))
    north.live(300, agent=False)
    lost = departures.of_lost("north")
    assert not lost.leaving and "which no agent there is known to stop" in lost.staying[job().pk].message
