"""Members are asked again what they serve: rarely, with few requests, and whatever they answer is kept."""

import random
import threading
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.kube.resources import ELASTIC_JOBS, PODS, PYTORCH_JOBS
from fleet.models import Cluster, Event
from fleet.services.clusters import health, rediscovery
from fleet.services.members import event_handlers
from tests.fleet.services.builders import Notes
from tests.support.members import eventually, join, requests_of, serve

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)
RTT_S = 0.2


def ask(now=None, seed=0):
    """Asks those that are due, and waits for their answers; how many that were."""
    threads = rediscovery.start(now or timezone.now(), random.Random(seed))
    for thread in threads:
        thread.join(60)
    return len(threads)


def fresh(name="north"):
    return Cluster.objects.get(name=name)


def test_it_asks_a_member_that_is_far_away_with_five_requests_and_keeps_the_answers(north):
    join(north)
    event_handlers.register(Notes())
    serve(north, PYTORCH_JOBS)
    north.faults.slow_s = RTT_S
    before = requests_of("north")
    now = timezone.now() + HOUR
    assert ask(now) == 1
    assert requests_of("north") - before <= 5
    assert (fresh().discovered_at, fresh().serves("kubeflow.org/v1", "PyTorchJob")) == (now, True)
    assert Event.objects.filter(reason="ClusterChanged").count() == 1


def test_it_makes_few_requests_a_minute_of_a_member_that_is_far_away(north):
    """Ten minutes of the periodic task: 300 checks a member, and what it serves once."""
    join(north)
    north.faults.slow_s = RTT_S
    start, before = timezone.now() + HOUR, requests_of("north")
    assert ask(start) == 1
    health.check_all(start)
    assert requests_of("north") - before <= 6
    again = [ask(start + timedelta(seconds=s)) for s in range(2, 480, 2)]
    assert sum(again) == 0
    assert ask(start + timedelta(seconds=721)) == 1


def test_it_spreads_members_over_time(north, members):
    join(north), join(members("south"))
    now = timezone.now() + HOUR
    ask(now)
    due = set(Cluster.objects.values_list("discovery_due_at", flat=True))
    assert len(due) == 2 and all(now + timedelta(minutes=8) <= at <= now + timedelta(minutes=12) for at in due)


def test_it_waits_for_no_member_and_keeps_what_comes_late(north, members, monkeypatch):
    south, answers, findings = members("south"), threading.Event(), rediscovery._findings
    join(north), join(south)
    serve(south, PYTORCH_JOBS)

    def late(claim):
        return claim.cluster.name != "south" or answers.wait(120)

    monkeypatch.setattr(rediscovery, "_findings", lambda claim: late(claim) and findings(claim))
    now = timezone.now() + HOUR
    threads = rediscovery.start(now, random.Random(0))
    eventually(lambda: fresh("north").discovered_at == now)
    assert fresh("south").discovered_at < now
    answers.set()
    for thread in threads:
        thread.join(60)
    assert fresh("south").discovered_at == now and fresh("south").serves("kubeflow.org/v1", "PyTorchJob")


def test_a_member_is_asked_by_one_process_and_again_when_that_one_died(north, monkeypatch):
    join(north)
    monkeypatch.setattr(rediscovery, "_findings", lambda _: None)
    now = timezone.now() + HOUR
    assert (ask(now), ask(now)) == (1, 0)
    assert ask(now + rediscovery.CLAIM + timedelta(seconds=1)) == 1


def test_it_asks_no_more_members_at_once_than_it_has_threads_for(north):
    row = join(north)
    many = 3 * rediscovery._AT_ONCE
    for number in range(many):
        Cluster.objects.create(
            name=f"m{number}", access=row.access, state="Ready", state_since=row.joined_at, joined_at=row.joined_at
        )
    north.faults.slow_s = 0.3
    now = timezone.now() + HOUR
    threads = rediscovery.start(now, random.Random(0))
    assert len(threads) == rediscovery._AT_ONCE and not rediscovery.start(now, random.Random(0))
    for thread in threads:
        thread.join(60)
    north.faults.slow_s = 0
    while ask(now):
        continue
    assert Cluster.objects.filter(discovered_at=now).count() == many + 1


def test_a_change_of_kinds_while_it_asks_is_not_lost(north):
    join(north)
    north.faults.slow_s = 0.3
    now = timezone.now() + HOUR
    [thread] = rediscovery.start(now, random.Random(0))
    Cluster.objects.update(discovery_due_at=None)
    thread.join(60)
    assert fresh().discovered_at == now and fresh().discovery_due_at is None
    assert ask(now) == 1


def test_it_keeps_what_a_member_serves_while_that_does_not_say(north):
    row = join(north)
    Cluster.objects.update(discovery_due_at=None)
    north.faults.error_rate = 1.0
    assert ask() == 1
    assert (fresh().apis, fresh().discovered_at) == (row.apis, row.discovered_at)
    north.faults.error_rate = 0.0
    assert ask(timezone.now() + HOUR) == 1 and fresh().discovered_at > row.discovered_at


def test_it_asks_no_member_that_does_not_answer_its_heartbeat(north):
    join(north)
    north.faults.away = True
    now = timezone.now() + HOUR
    health.check_all(now)
    assert ask(now) == 0


def test_it_asks_again_for_rights_that_an_account_was_seen_to_lack(north):
    class Needy(Notes):
        def account_needs(self):
            rights = (("create", PODS),)
            return [event_handlers.AccountNeeds(ELASTIC_JOBS, "the master", "default", "team", rights)]

    event_handlers.register(Needy())
    serve(north, ELASTIC_JOBS)
    serve(north, PYTORCH_JOBS)
    north.faults.denied.add("team/default")
    join(north)

    def lacks():
        return [row["resource"] for row in fresh().permissions if not row["allowed"]]

    ask(timezone.now() + HOUR)
    assert lacks() == ["pods"]
    north.faults.denied.clear()
    ask(timezone.now() + 2 * HOUR)
    assert lacks() == []
