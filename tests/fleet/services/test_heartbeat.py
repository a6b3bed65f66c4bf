"""The heartbeat against members that get ill, vanish, refuse us, and come back."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.changes import signals
from fleet.core.members.health import NOT_READY_TAINT, UNREACHABLE_TAINT
from fleet.models import Cluster, Event, JournalEntry
from fleet.services.clusters import health
from tests.support.members import join, requests_of

pytestmark = pytest.mark.django_db(transaction=True)


def check(*seconds):
    """Looks at all members at these moments; returns how the only cluster stands then."""
    start = timezone.now()
    for each in seconds:
        health.check_all(start + timedelta(seconds=each))
    return Cluster.objects.get()


def taints(row):
    return {taint["key"] for taint in row.taints}


def test_it_writes_a_time_and_no_news_while_all_is_well(north):
    row = join(north)
    journal = JournalEntry.objects.count()
    assert check(5).last_heartbeat > row.last_heartbeat
    assert JournalEntry.objects.count() == journal


def test_it_taints_a_member_that_stays_silent_and_clears_it_when_it_is_back(north):
    join(north)
    north.faults.away = True
    assert (check(0, 9).state, taints(check(0))) == ("Ready", set())
    gone = check(20)
    assert (gone.state, gone.state_reason, taints(gone)) == ("Unknown", "ClusterNotReachable", {UNREACHABLE_TAINT})
    north.faults.away = False
    assert (check(0).state, taints(check(2))) == ("Ready", set())
    assert Event.objects.filter(reason="ClusterNotReachable", type="Warning").count() == 1


@pytest.mark.parametrize("pause_s", [600, -600], ids=["paused", "clock set back"])
@pytest.mark.parametrize("drained", [False, True])
def test_after_a_pause_of_ours_the_silence_of_a_member_begins_anew(north, pause_s, drained):
    join(north)
    if drained:
        Cluster.objects.update(taints=[{"key": "team", "value": "vision", "effect": "NoSchedule"}])
    north.faults.away = True
    assert check(0).failing_since is not None
    resumed = check(pause_s, pause_s + 9)
    assert (resumed.state, taints(resumed)) == ("Ready", {"team"} if drained else set())
    assert check(pause_s + 11).state == "Unknown"


def test_a_pause_of_ours_does_not_forget_how_long_a_lost_member_is_lost(north):
    join(north)
    north.faults.away = True
    lost = check(0, 11)
    assert (lost.state, check(600).failing_since) == ("Unknown", lost.failing_since)


@pytest.mark.parametrize("failing_s", [0, 11])
def test_a_process_that_was_paused_while_it_looked_changes_nothing_that_another_has_seen_since(
    north, failing_s, monkeypatch
):
    join(north)
    north.faults.away = True
    start, judge = timezone.now(), health._judge
    health.check_all(start)

    def judge_late(*args):
        monkeypatch.setattr(health, "_judge", judge)
        judged = judge(*args)
        north.faults.away = False
        health.check_all(start + timedelta(seconds=20))
        return judged

    monkeypatch.setattr(health, "_judge", judge_late)
    health.check_all(start + timedelta(seconds=failing_s))
    row = Cluster.objects.get()
    assert (row.state, taints(row), row.failing_since) == ("Ready", set(), None)
    assert row.looked_at == start + timedelta(seconds=20)


def test_it_tells_a_member_that_is_ill_from_one_that_is_gone(north):
    join(north)
    north.faults.error_rate = 1.0
    ill = check(0, 11)
    assert (ill.state, ill.state_reason, taints(ill)) == ("NotReady", "ClusterNotHealthy", {NOT_READY_TAINT})


def test_it_says_when_the_credentials_have_expired(north):
    row = join(north)
    Cluster.objects.update(access={**row.access, "token": "expired"})
    refused = check(0, 11)
    assert (refused.state, refused.state_reason) == ("NotReady", "CredentialsRefused")


def test_it_delays_nobody_for_a_slow_member(north, members):
    south = members("south")
    join(north), join(south)
    south.faults.slow_s = 300
    began = time.monotonic()
    health.check_all(timezone.now() + timedelta(seconds=5))
    assert time.monotonic() - began < 60
    assert Cluster.objects.get(name="north").last_heartbeat > Cluster.objects.get(name="south").last_heartbeat


def test_it_announces_only_what_is_different(north):
    told = []
    join(north)

    def hear(**news):
        told.append(news["cluster_id"])

    signals.cluster_changed.connect(hear)
    north.faults.away = True
    row = check(0, 11, 13, 15)
    assert told == [row.pk]


def test_it_costs_a_member_one_request(north):
    join(north)
    check(0)
    before = requests_of("north")
    check(2, 4, 6)
    assert requests_of("north") - before == 3


def test_it_asks_at_another_path_when_the_first_is_no_longer_served(north, monkeypatch):
    join(north)
    check(0)
    monkeypatch.setattr(health, "_HEALTH_PATHS", ("/nothing", "/readyz", "/version"))
    monkeypatch.setitem(health._served_paths, north.access().server, "/nothing")
    assert check(2).state == "Ready" and health._served_paths[north.access().server] == "/readyz"


def test_it_writes_times_of_all_that_are_as_before_with_one_statement(north, members, django_assert_max_num_queries):
    join(north), join(members("south"))
    health.check_all(timezone.now())
    with django_assert_max_num_queries(7):
        health.check_all(timezone.now() + timedelta(seconds=5))
