"""Several watchers share the members by lease, and one that comes back late writes nothing; also run on PostgreSQL.

Each watcher is a `WatchManager` whose ticks a test makes by hand, at the times it chooses.
"""

import random
import threading
import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.core.members import marks
from fleet.core.settings import MemberSettings
from fleet.kube.resources import NODES
from fleet.member.watching import Reflector
from fleet.models import Cluster, Lease, Node, Pod
from fleet.services.clusters import clusters
from fleet.services.members import member_clients, signing
from fleet.services.watching import leases
from fleet.services.watching.manager import WatchManager
from fleet.services.watching.member_watch import MemberWatch
from tests.support.members import add_node, add_pod, api, delete_pod, eventually, join

pytestmark = pytest.mark.django_db(transaction=True)
NOW = timezone.now()
JOB = uuid.uuid4()
TERM = timedelta(seconds=MemberSettings().watch_lease_s)
SECOND = timedelta(seconds=1)


class PausedWatch(MemberWatch):
    """Its writer stops right before it writes, as in a process that is stopped there, until it is let go on."""

    def __init__(self, *args):
        super().__init__(*args)
        self.running = threading.Event()
        self.running.set()
        self.waits = threading.Event()

    def read_no_more(self):
        """A stopped process reads nothing: what it has taken from the network already is all that it will write."""
        for _, task in self._readers.values():
            task.cancel()
        self._loop.call_soon_threadsafe(self._client.close)

    def _persist(self, action):
        if not self.running.is_set():
            self.waits.set()
            self.running.wait(300)
        super()._persist(action)


@pytest.fixture
def watcher():
    """Makes watchers; those that are left are stopped in the end, and not by their own doing."""
    made = []

    def make():
        manager = WatchManager(threading.Event(), random.Random(len(made)))
        manager.start_watch = PausedWatch
        manager.heartbeat_every = timedelta(0)
        made.append(manager)
        return manager

    yield make
    for manager in made:
        kill(manager)


def kill(manager):
    """As kill -9: its watches end, its rows and leases stay as they are."""
    for watch in manager._watches.values():
        watch.running.set()
        watch.stop()
        watch.join(60)
    manager._watches.clear()


def watched(manager):
    return sorted(Cluster.objects.filter(pk__in=manager._watches).values_list("name", flat=True))


def make_clusters(server, count):
    """One server under many names, so that they are cheap."""
    access = member_clients.stored(server.access())
    for number in range(count):
        Cluster.objects.create(name=f"m{number}", access=access, state="Ready", state_since=NOW, joined_at=NOW)


def labels(row):
    mark = signing.sign_pods(row, str(JOB), 1, "team")
    return {marks.JOB_UID: str(JOB), marks.ATTEMPT: "1", marks.POD_MARK: mark}


def shown():
    """What the rows say runs: the GPUs that are in use on each node, and our pods."""
    used = {node.name: node.requested.get("nvidia.com/gpu", 0) for node in Node.objects.all()}
    return used, [(pod.name, pod.phase) for pod in Pod.objects.all()]


def test_a_watcher_that_was_paused_and_comes_back_late_does_not_touch_the_rows(north, watcher, monkeypatch):
    monkeypatch.setattr(Reflector, "watch_s", 1)
    add_node(north, "n1")
    row = join(north)
    first, second = watcher(), watcher()
    first.tick(NOW)
    eventually(lambda: shown() == ({"n1": 0}, []))
    paused = first._watches[row.pk]
    paused.running.clear()
    add_pod(north, "late", "n1", gpus=8, labels=labels(row))
    assert paused.waits.wait(60)
    paused.read_no_more()

    second.tick(NOW + 60 * SECOND)
    eventually(lambda: shown() == ({"n1": 8}, [("late", "Running")]))
    delete_pod(north, "late")
    eventually(lambda: shown() == ({"n1": 0}, []))
    paused.running.set()
    paused.join(60)
    kill(first)
    assert shown() == ({"n1": 0}, [])

    add_node(north, "n2")
    eventually(lambda: shown() == ({"n1": 0, "n2": 0}, []))


def test_it_mends_rows_that_differ_from_the_member_with_the_next_list(north, watcher, monkeypatch):
    """As left by a watcher of a version that knew no leases."""
    monkeypatch.setattr(Reflector, "watch_s", 1)
    monkeypatch.setattr(Reflector, "relist_s", 1.0)
    add_node(north, "n1")
    row = join(north)
    add_pod(north, "ours", "n1", gpus=2, labels=labels(row))
    manager = watcher()
    manager.tick(NOW)
    eventually(lambda: shown() == ({"n1": 2}, [("ours", "Running")]))
    Node.objects.update(requested={"nvidia.com/gpu": 8})
    Node.objects.create(cluster=row, name="ghost")
    Pod.objects.update(name="other", phase="Pending")
    eventually(lambda: shown() == ({"n1": 2}, [("ours", "Running")]))


def test_two_watchers_share_five_members_and_the_other_takes_over_those_of_one_that_dies(north, watcher):
    make_clusters(north, 5)
    first, second = watcher(), watcher()
    first.tick(NOW)
    assert len(watched(first)) == 5
    for _ in range(2):
        second.tick(NOW + SECOND)
        first.tick(NOW + SECOND)
    assert (len(watched(first)), len(watched(second))) == (3, 2)
    assert sorted(watched(first) + watched(second)) == ["m0", "m1", "m2", "m3", "m4"]
    kill(first)
    second.tick(NOW + TERM)
    assert len(watched(second)) == 2
    second.tick(NOW + TERM + 2 * SECOND)
    assert len(watched(second)) == 5
    epochs = set(Lease.objects.values_list("epoch", flat=True))
    assert epochs == {2}


def test_one_that_stops_hands_its_members_over_at_once(north, watcher):
    make_clusters(north, 3)
    first, second = watcher(), watcher()
    first.tick(NOW)
    first.stop()
    second.tick(NOW + SECOND)
    assert len(watched(second)) == 3


def test_one_that_starts_again_has_its_members_back_within_the_term(north, watcher):
    make_clusters(north, 3)
    first = watcher()
    first.tick(NOW)
    kill(first)
    again = watcher()
    again.tick(NOW + SECOND)
    assert watched(again) == []
    again.tick(NOW + TERM + SECOND)
    assert len(watched(again)) == 3


def test_a_watcher_that_is_alone_keeps_its_members_however_long_it_was_paused(north, watcher):
    make_clusters(north, 2)
    manager = watcher()
    manager.tick(NOW)
    watches = dict(manager._watches)
    manager.tick(NOW + 3600 * SECOND)
    assert manager._watches == watches and all(watch.alive for watch in watches.values())


def test_it_has_nothing_to_share_without_members_and_forgets_the_leases_of_those_that_left(north, watcher):
    manager = watcher()
    manager.tick(NOW)
    assert watched(manager) == [] and not Lease.objects.exists()
    row = join(north)
    manager.tick(NOW + SECOND)
    assert watched(manager) == ["north"]
    clusters.detach(row, by="alice", now=NOW + SECOND)
    manager.tick(NOW + 2 * SECOND)
    assert watched(manager) == [] and not Lease.objects.exists()


def test_a_late_confirmation_vouches_for_nothing(north, watcher):
    add_node(north, "n1")
    row = join(north)
    first, second = watcher(), watcher()
    first.tick(NOW)
    eventually(lambda: first._watches[row.pk].is_current)
    second.tick(NOW + 60 * SECOND)
    second._watches[row.pk].running.clear()
    first._confirm(NOW + 61 * SECOND)
    assert Cluster.objects.get().watched_until is None


def test_it_says_which_watcher_owns_which_member(north, watcher):
    make_clusters(north, 2)
    manager = watcher()
    assert leases.owners(NOW) == {"": ["m0", "m1"]}
    manager.tick(NOW)
    assert leases.owners(NOW) == {manager.instance: ["m0", "m1"]}
    assert leases.owners(NOW + TERM + SECOND) == {"": ["m0", "m1"]}
    assert api(north).list(NODES.path())["items"] == []
