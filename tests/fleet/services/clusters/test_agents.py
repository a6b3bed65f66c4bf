"""The fleet's Lease in a member: renewed while it answers, written before it is sent, and what the agent answers believed."""

import time
from datetime import timedelta

import pytest
import yaml
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.core.members import fence
from fleet.kube.resources import LEASES, NAMESPACES
from fleet.kubeapi.objects.clusters import Clusters
from fleet.member.errors import MemberMissing
from fleet.models import Cluster, Event, MemberAgent
from fleet.services.clusters import agents, clusters
from fleet.services.members import member_clients

pytestmark = pytest.mark.django_db(transaction=True)
PATH = LEASES.path(fence.NAMESPACE, fence.NAME)


class Fleet:
    def __init__(self, member):
        self.cluster = clusters.join("north", yaml.safe_dump(member.kubeconfig()), by="test", now=timezone.now())
        self.client = member_clients.client(self.cluster)
        self.now = timezone.now()

    def install(self) -> None:
        """What an agent makes when it starts."""
        self.client.create(NAMESPACES.path(), {"metadata": {"name": fence.NAMESPACE}})
        body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": {"name": fence.NAME}, "spec": {}}
        self.client.create(LEASES.path(fence.NAMESPACE), body)

    def renew(self, after_s: float = 0) -> int:
        self.now += timedelta(seconds=after_s)
        threads = agents.start(self.now)
        for thread in threads:
            thread.join(60)
        return len(threads)

    def answer(self, text: str | None = None) -> None:
        seen = self.renewal() if text is None else text
        self.client.merge_patch(PATH, {"metadata": {"annotations": {fence.SEEN: seen}}})

    def renewal(self) -> str:
        return self.client.get(PATH)["spec"].get("renewTime", "")

    def known(self) -> MemberAgent:
        return MemberAgent.objects.select_related("cluster").get()


@pytest.fixture
def fleet(north):
    return Fleet(north)


@pytest.fixture
def answered(fleet):
    fleet.install()
    fleet.renew()
    fleet.answer()
    fleet.renew(30)
    return fleet


def condition() -> tuple[str, str]:
    status = Clusters().render(Clusters().rows().get())["status"]
    [shown] = [each for each in status["conditions"] if each["type"] == "FencingAgent"]
    return shown["status"], shown["reason"]


def test_a_member_without_an_agent_is_asked_once_a_minute(fleet, as_admin):
    assert [fleet.renew(), fleet.renew(30), fleet.renew(29), fleet.renew(2)] == [1, 0, 0, 1]
    assert condition() == ("False", "NoAgent")
    with pytest.raises(MemberMissing):
        fleet.client.get(PATH)
    shown = as_admin.get("/api/v1/clusters/north/").json()["agent"]
    assert shown == {
        "answers": False,
        "reason": "NoAgent",
        "message": "there is no agent in the cluster",
        "seen_at": None,
    }


def test_an_agent_that_answers_is_known_and_renewed_four_times_within_the_duration(answered, as_admin):
    assert condition() == ("True", "AgentAnswers") and Event.objects.filter(reason="AgentAnswers").count() == 1
    assert [answered.renew(29), answered.renew(1), answered.renew(30)] == [0, 1, 1]
    assert answered.known().until == answered.now + timedelta(seconds=120)
    assert as_admin.get("/api/v1/clusters/north/").json()["agent"]["answers"] is True


def test_one_that_no_longer_answers_is_said_to_be_silent_once(answered):
    for _ in range(6):
        answered.renew(30)
    assert condition() == ("False", "AgentSilent") and Event.objects.get(reason="AgentSilent").count == 1
    answered.answer()
    answered.renew(30)
    assert condition() == ("True", "AgentAnswers")


def test_a_member_that_fails_its_health_checks_is_sent_none(answered):
    Cluster.objects.update(failing_since=answered.now)
    before = answered.known().until
    assert answered.renew(600) == 0 and answered.known().until == before
    Cluster.objects.update(failing_since=None, state=Cluster.State.UNKNOWN)
    assert answered.renew(600) == 0


def test_what_a_renewal_means_is_written_before_it_is_sent(answered, north):
    """The answer is lost, the renewal may have arrived."""
    north.faults.away = True
    answered.renew(30)
    assert answered.known().until == answered.now + timedelta(seconds=120)
    assert answered.known().renewed_at == answered.now


def test_two_workers_renew_it_once(answered):
    answered.now += timedelta(seconds=30)
    row = MemberAgent.objects.select_related("cluster").get()
    assert answered.renew() == 1
    assert not agents._claim(row, answered.now), "another one has read the row before"


def test_a_worker_that_was_paused_before_its_request_sends_nothing(answered):
    row, before = answered.known(), answered.renewal()
    later = answered.now + timedelta(seconds=30)
    assert agents._claim(row, later)
    agents._SLOTS.acquire()
    spec = agents._spec(later)
    with CaptureQueriesContext(connection) as queries:
        agents._renew(row, True, spec, later, time.monotonic() - 6)
    assert answered.renewal() == before
    assert not queries.captured_queries, "its thread has no connection to give back"


def test_answers_that_the_fleet_cannot_have_caused_are_not_believed(fleet):
    fleet.install()
    fleet.renew()
    for text in ("", "yes", "2026-01-01", "9999-12-31T23:59:59Z", "1" * 500):
        fleet.answer(text)
        fleet.renew(61)
        assert not fleet.known().is_answered, text


def test_a_clock_that_is_set_back_shortens_nothing(answered):
    until = answered.known().until
    answered.now -= timedelta(hours=1)
    assert answered.renew() == 1, "it is not left alone for an hour"
    assert answered.known().until == until, "what was sent before may still let copies run"
    answered.answer()
    answered.renew(30)
    assert answered.known().is_answered


def test_what_the_account_of_the_fleet_lacks_is_said(fleet, north):
    fleet.install()
    north.rotate("another-token")
    fleet.renew()
    assert "may not renew the Lease convoy-system/convoy-fleet" in fleet.known().message
