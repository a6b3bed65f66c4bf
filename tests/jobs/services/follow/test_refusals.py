"""A member that does not create pods says why in its events: their job shows it, bounded and cleaned, until they are there."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.core.members import observed
from fleet.models import Cluster, Event, Pod
from jobs.models import Attempt, Work
from jobs.services.follow.status import JobEventHandler
from jobs.services.follow.timeouts import health
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
QUOTA = 'pods "llama-worker-0" is forbidden: exceeded quota: team, requested: pods=1, used: pods=4, limited: pods=4'


@pytest.fixture
def llama():
    """Sent to north as a gang of two, of which no pod is there."""
    books.a_cluster("north")
    books.a_cluster("south")
    books.apply(pytorch_job("llama", workers=1))
    books.cycle()
    Work.objects.update(state="Applied", object_uid="u1", applied_at=timezone.now())
    report()
    return books.job("llama")


def report(condition="Created"):
    books.report("llama", condition)
    return books.job("llama")


def event(message=QUOTA, reason="FailedCreatePod", kind="PyTorchJob", name="llama", uid="u1", **fields):
    about = {"kind": kind, "namespace": "default", "name": name, "uid": uid}
    known = {"metadata": {"namespace": "default"}, "type": "Warning", "involvedObject": about}
    return {**known, "reason": reason, "message": message, **fields}


def refuse(*events, now=None):
    refusals = [refusal for each in events if (refusal := observed.refusal(each))]
    cluster = books.job("llama").cluster_id or Cluster.objects.get(name="north").pk
    JobEventHandler().on_refusals(cluster, refusals, now or timezone.now())
    return books.job("llama").reason


def test_it_shows_the_members_reason_and_message_instead_of_a_count(llama):
    reason = refuse(event())
    assert reason["code"] == "MemberRefused" and reason["cause"] == "MemberRefused"
    assert f"does not create its pods: FailedCreatePod: {QUOTA}" in reason["message"]
    assert report().reason == reason, "a report without pods takes it back"
    (line,) = Event.objects.filter(reason="PodsRefused")
    assert line.type == "Warning" and QUOTA in line.message


def test_it_is_over_once_the_pods_are_there(llama):
    refuse(event())
    for name in ("llama-master-0", "llama-worker-0"):
        fields = {"job_uid": llama.uid, "attempt": 1, "phase": "Pending", "created_at": timezone.now(), "uid": name}
        Pod.objects.create(cluster=llama.cluster, namespace="default", name=name, **fields)
    assert report().reason["code"] == "WaitingForPods"
    assert refuse(event())["code"] == "WaitingForPods", "an old event is believed"


def test_a_flood_of_events_changes_the_job_every_few_seconds_at_most(llama):
    now = timezone.now()
    for count in range(20):
        refuse(event(f"pod {count} is forbidden"), now=now + timedelta(seconds=count / 10))
    assert (
        "pod 0 is" in books.job("llama").reason["message"] and Event.objects.filter(reason="PodsRefused").count() == 1
    )
    assert "pod 99 is" in refuse(event("pod 99 is forbidden"), now=now + timedelta(seconds=30))["message"]
    assert Event.objects.filter(reason="PodsRefused").count() == 1


def test_a_flood_of_other_reasons_changes_it_no_more_often(llama):
    now = timezone.now()
    for count in range(20):
        refuse(event("forbidden", f"FailedCreate{count}"), now=now + timedelta(seconds=count / 10))
    assert Event.objects.filter(reason="PodsRefused").count() == 1
    assert refuse(event("forbidden", "FailedCreate99"), now=now + timedelta(seconds=30))["refused"] == "FailedCreate99"


def test_a_refusal_is_replaced_although_the_clock_was_set_back(llama):
    now = timezone.now()
    refuse(event("before"), now=now)
    assert "after" in refuse(event("after"), now=now - timedelta(hours=1))["message"]


def test_it_cleans_and_cuts_what_the_member_quotes(llama):
    message = refuse(event("denied\r\n\x1b[31m\u202e" + "x" * 5000))["message"]
    assert "denied [31m xxx" in message and message.isprintable() and len(message) < 450


@pytest.mark.parametrize(
    "other",
    [
        {"uid": "another"},
        {"name": "llama-2", "uid": "u2"},
        {"reason": "BackOff"},
        {"type": "Normal"},
        {"kind": "Job", "name": "alpaca-0"},
        {"involvedObject": {"kind": "PyTorchJob", "namespace": "other", "name": "llama", "uid": "u1"}},
        {"metadata": {"namespace": "other"}},
        {"involvedObject": None, "message": None},
    ],
)
def test_events_about_other_objects_change_nothing(llama, other):
    assert refuse({**event(**{k: v for k, v in other.items() if k in ("uid", "name", "reason", "kind")}), **other})[
        "code"
    ] == ("WaitingForPods")


def test_it_shows_what_is_refused_to_an_object_made_for_the_copy(llama):
    assert (
        "webhook"
        in refuse(event("admission webhook denied", "FailedCreate", "ReplicaSet", "llama-rs-0", "u9"))["message"]
    )


def test_it_shows_nothing_on_a_job_that_runs(llama):
    report("Running")
    assert refuse(event()) is None


def test_a_job_that_leaves_because_of_it_says_so_and_blames_the_member(llama, settings):
    refuse(event())
    later = timezone.now() + timedelta(seconds=2 * settings.CONVOY_FAILOVER.start_timeout_s)
    Cluster.objects.update(watched_until=later)
    assert health.check(later) == 1
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.cause) == ("Refused", "MemberRefused") and "exceeded quota" in attempt.message


@pytest.mark.parametrize("name", ["llama\x00", "llama\ud800", "llama" + 100_000 * "-a", "-", "", None, 7])
def test_an_event_about_what_can_be_no_object_is_left_out(name):
    assert observed.refusal(event(name=name)) is None
