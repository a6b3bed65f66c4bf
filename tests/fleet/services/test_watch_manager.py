"""The watcher against simulated members: rows follow what is there, and are right again after whatever was missed."""

import random
import threading
import uuid

import pytest
from django.db import OperationalError, transaction
from django.utils import timezone

from fleet import metrics
from fleet.changes import events, journal, signals
from fleet.core.members import marks
from fleet.db import clock
from fleet.kube.resources import NODES, PYTORCH_JOBS, Resource
from fleet.member import watching as reflectors
from fleet.models import Cluster, Heartbeat, Hold, Node, Pod
from fleet.services.clusters import clusters, health, rediscovery
from fleet.services.members import event_handlers, member_clients, signing
from fleet.services.watching.manager import WatchManager
from tests.fleet.services.builders import Notes, synced
from tests.support.members import (
    add_node,
    add_pod,
    api,
    bind,
    delete_pod,
    eventually,
    join,
    kubeconfig,
    serve,
    set_phase,
)

pytestmark = pytest.mark.django_db(transaction=True)
JOB = uuid.uuid4()
GPUS = {"nvidia.com/gpu": 2}
OURS = {marks.JOB_UID: str(JOB), marks.ATTEMPT: "1"}


def ours(row):
    """The labels of a pod that Convoy had made in that member."""
    return {**OURS, marks.POD_MARK: signing.sign_pods(row, str(JOB), 1, "team")}


def gpus_asked(name="n1"):
    return Node.objects.get(name=name).requested.get("nvidia.com/gpu", 0)


@pytest.fixture
def freed():
    """The clusters whose capacity was said to be freed."""
    told = []

    def hear(cluster_id, **_):
        told.append(cluster_id)

    signals.capacity_freed.connect(hear)
    yield told
    signals.capacity_freed.disconnect(hear)


def test_it_counts_what_bound_unfinished_pods_ask(north, watching):
    add_node(north, "n1")
    add_pod(north, "a", "n1", gpus=2)
    add_pod(north, "done", "n1", gpus=2, phase="Succeeded")
    add_pod(north, "waits", gpus=2, phase="Pending")
    watching()
    synced(join(north))
    assert Node.objects.get().requested == {"nvidia.com/gpu": 2, "cpu": 1000, "pods": 1}
    assert Node.objects.get().allocatable["memory"] == 256 * 2**30


def test_it_follows_pods_as_they_come_and_go(north, watching, freed):
    add_node(north, "n1")
    row = join(north)
    watching()
    synced(row)
    eventually(lambda: freed)
    freed.clear()
    add_pod(north, "a", "n1", gpus=3)
    eventually(lambda: gpus_asked() == 3)
    assert not freed
    set_phase(north, "a", "Succeeded")
    eventually(lambda: gpus_asked() == 0)
    eventually(lambda: set(freed) == {row.pk})


def test_it_notices_a_cluster_that_joins_and_one_that_leaves(north, watching):
    add_node(north, "n1")
    watching()
    row = join(north)
    synced(row)
    clusters.detach(row, by="alice", now=timezone.now())
    add_node(north, "n2")
    assert not Node.objects.exists()


def test_it_keeps_rows_of_our_own_pods_only(north, watching):
    add_node(north, "n1")
    row = join(north)
    watching()
    add_pod(north, "ours", "n1", labels=ours(row))
    add_pod(north, "theirs", "n1")
    add_pod(north, "only-says", "n1", labels=OURS)
    add_pod(north, "wrong", "n1", labels={**ours(row), marks.ATTEMPT: "2"})
    eventually(lambda: gpus_asked_or_none() == 4)
    assert [(p.name, p.job_uid, p.attempt, p.phase) for p in Pod.objects.all()] == [("ours", JOB, 1, "Running")]
    delete_pod(north, "ours")
    eventually(lambda: not Pod.objects.exists())
    assert row.pk


def gpus_asked_or_none():
    return gpus_asked() if Node.objects.exists() else None


def test_it_ends_a_hold_when_all_pods_of_the_gang_are_bound(north, watching, freed):
    add_node(north, "n1")
    row = join(north)
    hold = Hold.objects.create(cluster=row, job_uid=JOB, attempt=1, amounts=GPUS, pods=2, made_at=timezone.now())
    for name in ("a", "b"):
        add_pod(north, name, labels=ours(row), phase="Pending")
    watching()
    synced(row)
    bind(north, "a", "n1")
    eventually(lambda: gpus_asked() == 1)
    hold.refresh_from_db()
    assert hold.released_at is None
    freed.clear()
    bind(north, "b", "n1")
    eventually(lambda: Hold.objects.get().released_at)
    assert gpus_asked() == 2


@pytest.mark.parametrize(
    ("amounts", "nodes", "frees"),
    [
        ({"nvidia.com/gpu": 2}, [], False),
        ({"nvidia.com/gpu": 3}, [], True),
        ({"nvidia.com/gpu": 2}, [[{"nvidia.com/gpu": 1}, ["n1"]], [{"nvidia.com/gpu": 1}, ["n1"]]], False),
        ({"nvidia.com/gpu": 2}, [[{"nvidia.com/gpu": 1}, ["n1", "n2"]]], True),
    ],
)
def test_a_hold_that_ends_frees_what_its_pods_do_not_take(north, watching, freed, amounts, nodes, frees):
    """Each of the gang's two pods takes one GPU of the first node."""
    for name in ("n1", "n2"):
        add_node(north, name)
    row = join(north)
    fields = {"amounts": amounts, "nodes": nodes, "pods": 2, "made_at": timezone.now()}
    for name in ("a", "b"):
        add_pod(north, name, labels=ours(row), phase="Pending")
    watching()
    synced(row)
    eventually(lambda: freed)
    Hold.objects.create(cluster=row, job_uid=JOB, attempt=1, **fields)
    freed.clear()
    bind(north, "a", "n1")
    bind(north, "b", "n1")
    eventually(lambda: Hold.objects.get().released_at)
    add_pod(north, "later", "n2", gpus=1)
    eventually(lambda: gpus_asked("n2") == 1)
    assert bool(freed) == frees


def test_it_is_right_again_after_it_was_away(north, watching):
    add_node(north, "n1")
    add_node(north, "n2")
    row = join(north)
    add_pod(north, "a", "n1", labels=ours(row))
    stop = watching()
    synced(row)
    stop()
    delete_pod(north, "a")
    api(north).delete(NODES.path(name="n2"))
    watching()
    eventually(lambda: not Pod.objects.exists() and list(Node.objects.values_list("requested")) == [({},)])


def test_it_resumes_when_the_member_comes_back(north, watching):
    add_node(north, "n1")
    row = join(north)
    watching()
    synced(row)
    north.faults.away = True
    eventually(lambda: health.probe_member(member_clients.client(row)).answered is False)
    north.faults.away = False
    add_pod(north, "a", "n1")
    eventually(lambda: gpus_asked() == 1)


def test_it_heals_a_watch_that_went_silent(north, watching):
    add_node(north, "n1")
    row = join(north)
    watching()
    synced(row)
    north.faults.stale_watch = True
    add_pod(north, "a", "n1")
    north.faults.stale_watch = False
    eventually(lambda: gpus_asked() == 1)


def test_it_watches_on_while_another_member_is_dead(north, members, watching):
    south = members("south")
    add_node(north, "n1")
    join(south)
    row = join(north)
    south.faults.away = True
    watching()
    synced(row)
    add_pod(north, "a", "n1")
    eventually(lambda: gpus_asked() == 1)


def test_it_takes_up_renewed_credentials(north, watching):
    add_node(north, "n1")
    row = join(north)
    Cluster.objects.filter(pk=row.pk).update(access={**row.access, "token": "expired"})
    watching()
    eventually(lambda: Heartbeat.objects.filter(role="watcher"))
    clusters.renew(row, kubeconfig(north), by="alice", now=timezone.now())
    synced(row)


def test_it_says_that_it_is_alive(watching):
    watching()
    eventually(lambda: Heartbeat.objects.filter(role="watcher"))


def test_it_starts_and_waits_while_the_database_does_not_answer(monkeypatch):
    now, stop, tries = clock.now, threading.Event(), []

    def away_at_first():
        tries.append(len(tries))
        if len(tries) < 3:
            raise OperationalError("the server is away")
        stop.set()
        return now()

    monkeypatch.setattr(clock, "now", away_at_first)
    monkeypatch.setattr(WatchManager, "tick_s", 0.0)
    WatchManager(stop, random.Random(0)).run()
    assert len(tries) >= 3


def test_a_change_is_not_forgotten_when_the_database_goes_away_before_it_is_followed(monkeypatch):
    manager, resyncs, rebalance = WatchManager(threading.Event(), random.Random(0)), [], WatchManager._rebalance
    monkeypatch.setattr(WatchManager, "_resync", lambda _: resyncs.append(len(resyncs)))
    manager.tick(clock.now())

    def away(_, now):
        monkeypatch.setattr(WatchManager, "_rebalance", rebalance)
        raise OperationalError("the server is away")

    announced = journal.Change("Cluster", "", "north", "uid", journal.Action.MODIFIED)
    with transaction.atomic():
        events.announce([announced], clock.now())
    monkeypatch.setattr(WatchManager, "_rebalance", away)
    with pytest.raises(OperationalError):
        manager.tick(clock.now())
    manager.tick(clock.now())
    assert resyncs == [0, 1]


@pytest.fixture
def notes():
    follower = Notes()
    event_handlers.register(follower)
    return follower


def pytorch_job(name="llama", labels=OURS):
    return {"metadata": {"name": name, "namespace": "team", "labels": labels}, "spec": {"pytorchReplicaSpecs": {}}}


def test_it_calls_handlers_for_jobs_that_come_and_go(north, watching, notes):
    serve(north, PYTORCH_JOBS)
    api(north).create(PYTORCH_JOBS.path("team"), pytorch_job())
    join(north)
    watching()
    eventually(lambda: ("synced", set()) in notes.heard)
    assert notes.heard[0] == ("observed", "llama")
    api(north).create(PYTORCH_JOBS.path("team"), pytorch_job("foreign", {}))
    api(north).delete(PYTORCH_JOBS.path("team", "llama"))
    eventually(lambda: ("vanished", "llama") in notes.heard)
    assert ("observed", "foreign") not in notes.heard


def test_it_requests_a_list_once_it_knows_what_must_be_in_it(north, watching, notes, monkeypatch):
    def create_meanwhile(*_):
        eventually(lambda: api(north).create(PYTORCH_JOBS.path("team"), pytorch_job()))
        return [(JOB, 1), (JOB, 2)]

    monkeypatch.setattr(notes, "expected", create_meanwhile)
    serve(north, PYTORCH_JOBS)
    join(north)
    watching()
    eventually(lambda: ("synced", {(JOB, 2)}) in notes.heard)
    assert notes.heard[0] == ("observed", "llama")


def test_a_member_that_is_away_costs_no_look_at_what_it_should_have_with_every_try(north, watching, notes, monkeypatch):
    asked = []
    monkeypatch.setattr(notes, "expected", lambda *about: asked.append(about) or [(JOB, 1)])
    monkeypatch.setattr(reflectors, "_PAUSE_S", (0.01, 0.02))
    monkeypatch.setattr(reflectors, "_EXPECTED_S", 3600.0)
    serve(north, PYTORCH_JOBS)
    join(north)
    watching()
    eventually(lambda: ("synced", {(JOB, 1)}) in notes.heard)
    north.faults.away = True
    tries = metrics.WATCH_RESTARTS.labels("north")._value
    before = tries.get()
    eventually(lambda: tries.get() > before + 50)
    assert len(asked) <= 2
    notes.heard.clear()
    north.faults.away = False
    eventually(lambda: ("synced", {(JOB, 1)}) in notes.heard)


def test_it_calls_handlers_for_pods_after_their_rows_are_written(north, watching, notes):
    serve(north, PYTORCH_JOBS)
    add_node(north, "n1")
    row = join(north)
    watching()
    synced(row)
    add_pod(north, "a", "n1", labels=ours(row))
    eventually(lambda: ("pods", {(JOB, 1)}) in notes.heard)
    assert Pod.objects.get().job_uid == JOB


def test_it_finds_a_kind_that_came_between_joining_and_watching(north, watching):
    row = join(north)
    serve(north, ELASTIC)
    watching()
    synced(row)
    eventually(lambda: Cluster.objects.get().discovery_due_at is None)


def test_it_watches_a_kind_from_when_the_member_serves_it(north, watching, notes, monkeypatch):
    monkeypatch.setattr(notes, "resources", lambda: [ELASTIC])
    monkeypatch.setattr(event_handlers, "_handlers", [])
    row = join(north)
    event_handlers.register(notes)
    watching()
    synced(row)
    serve(north, ELASTIC)
    eventually(lambda: Cluster.objects.get().discovery_due_at is None)
    for thread in rediscovery.start(timezone.now(), random.Random(0)):
        thread.join()
    eventually(lambda: ("synced", set()) in notes.heard)


ELASTIC = Resource("elastic.iml.github.io", "v1alpha1", "elasticjobs", "ElasticJob")
