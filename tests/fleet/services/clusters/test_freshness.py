"""A member whose picture has grown old says so, gets no jobs, and is not judged; when it is current again it goes on."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.kubeapi.objects.clusters import Clusters
from fleet.models import Cluster, Event
from fleet.services.clusters import freshness
from tests.support.members import add_node, eventually, join

pytestmark = pytest.mark.django_db(transaction=True)
NOW = timezone.now()
MINUTE = timedelta(minutes=1)


@pytest.fixture
def row():
    return Cluster.objects.create(
        name="north", access={}, state="Ready", state_since=NOW, joined_at=NOW, synced_at=NOW, watched_since=NOW,
        watched_until=NOW,
    )  # fmt: skip


def fresh(row):
    return Cluster.objects.get(pk=row.pk)


def test_it_says_as_of_when_the_picture_is_and_takes_it_back(row):
    freshness.review(NOW + MINUTE)
    assert fresh(row).stale_since == NOW
    assert "shown as of" in Event.objects.get(reason="PictureStale").message
    freshness.confirm([row.pk], NOW + MINUTE)
    freshness.review(NOW + MINUTE)
    assert fresh(row).stale_since is None
    assert Event.objects.filter(reason="PictureCurrent").exists()


def test_it_says_so_once(row):
    for minute in range(1, 4):
        freshness.review(NOW + minute * MINUTE)
    assert Event.objects.get(reason="PictureStale").count == 1 and fresh(row).stale_since == NOW


def test_it_begins_a_new_watch_after_a_gap(row):
    freshness.confirm([row.pk], NOW + timedelta(seconds=2))
    assert fresh(row).watched_since == NOW
    freshness.confirm([row.pk], NOW + 11 * MINUTE)
    assert fresh(row).watched_since == fresh(row).watched_until == NOW + 11 * MINUTE


def test_it_begins_a_new_watch_after_a_clock_that_was_ahead_is_right_again(row):
    ahead = NOW + timedelta(hours=1)
    freshness.confirm([row.pk], ahead)
    assert fresh(row).watched_since == ahead
    for seconds in (2, 4):
        freshness.confirm([row.pk], NOW + timedelta(seconds=seconds))
    observed = fresh(row).freshness.observed_for(NOW + timedelta(seconds=1), NOW + timedelta(seconds=4))
    assert observed == timedelta(seconds=2), "jobs that fail now would not be moved for an hour"


def test_kubectl_shows_a_condition(row):
    def condition():
        shown = Clusters().render(fresh(row))["status"]["conditions"]
        return next((each["status"], each["reason"]) for each in shown if each["type"] == "PictureCurrent")

    assert condition() == ("True", "PictureCurrent")
    freshness.review(NOW + MINUTE)
    assert condition() == ("False", "PictureStale")


def test_its_watcher_confirms_a_member_that_is_followed_and_not_one_that_is_away(north, watching):
    add_node(north, "n1")
    watching()
    row = join(north)
    eventually(lambda: fresh(row).watched_until)
    north.faults.away = True
    eventually(lambda: timezone.now() - fresh(row).watched_until > timedelta(seconds=3))
    last = fresh(row).watched_until
    north.faults.away = False
    eventually(lambda: fresh(row).watched_until > last)
