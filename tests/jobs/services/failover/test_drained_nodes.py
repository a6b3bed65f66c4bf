"""A drained node: its jobs leave it whole, at the pace of the cluster and at no cost, and the preview says where they go."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from fleet.core.node_exclusions import ExclusionReason
from fleet.errors import Conflict
from fleet.models import Cluster, Event, Hold, NodeExclusion, Pod
from fleet.services.clusters import node_exclusions
from jobs.models import Attempt, EvictionWindow, Job, Work
from jobs.services.failover import drained_nodes, eviction_rate
from jobs.services.follow.timeouts import health
from jobs.services.inspect import whatif
from jobs.services.inspect.whatif import OneNode, Suppose
from jobs.services.scheduling import loop
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
NOW = timezone.now()


@pytest.fixture(autouse=True)
def north():
    """Four nodes of eight GPUs."""
    loop._idle_caches.clear()
    cluster = books.a_cluster("north")
    first = cluster.nodes.get()
    first.delete()
    for name in "abcd":
        cluster.nodes.create(name=name, ready=True, allocatable=first.allocatable)
    return cluster


def runs(name="llama", nodes="abc"):
    """A gang of which each pod has a node of its own, with all pods bound."""
    books.apply(pytorch_job(name, workers=len(nodes) - 1, gpus=8))
    books.cycle(NOW)
    books.sent()
    books.report(name, "Running", now=NOW)
    job = books.job(name)
    for index, node in enumerate(nodes):
        role = {"role": "worker", "index": index - 1} if index else {"role": "master", "index": 0}
        about = {"namespace": "default", "name": f"{name}-{index}", "uid": f"{name}-{index}", "phase": "Running"}
        Pod.objects.create(cluster=job.cluster, job_uid=job.uid, attempt=1, node=node, created_at=NOW, **about, **role)
    Hold.objects.filter(job_uid=job.uid).update(released_at=NOW)
    job.cluster.nodes.filter(name__in=nodes).update(requested={books.GPU: 8})
    return job


def drain(cluster, node="b"):
    return node_exclusions.drain(cluster, node, "new fans", by="ada", now=NOW)


def after_listing(monkeypatch, change):
    """It happens after the jobs of a node were read and before the first of them is looked at."""
    read = drained_nodes.leaving_from

    def late(cluster, node):
        jobs = read(cluster, node)
        change()
        return jobs

    monkeypatch.setattr(drained_nodes, "leaving_from", late)


def outcomes(node="b"):
    answer = whatif.simulate_change(Suppose(drain_node=OneNode("north", node)), by="ada", now=NOW)
    return {each.name: (each.before.outcome, each.after.outcome, each.after.cluster) for each in answer.differences}


def test_a_gang_leaves_a_drained_node_whole_and_comes_back_beside_it(north):
    job = runs()
    assert outcomes() == {"llama": ("Runs", "Starts", "north")}, "on a, c and d, of which it has two itself"
    assert health.check(NOW) == 0
    drain(north)
    assert health.check(NOW) == 1 and health.check(NOW) == 0
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.cause, attempt.message) == ("Drained", "", "node b of north is drained")
    assert Work.objects.get().state == "Withdrawing", "its other nodes may be what its replacement needs"
    assert "node b of north is drained" in Event.objects.get(reason="Moving").message
    Pod.objects.all().delete()
    north.nodes.update(requested={})
    books.gone("llama")
    books.cycle(NOW + timedelta(seconds=1))
    job.refresh_from_db()
    assert (job.state, job.attempt, job.cluster) == ("Placed", 2, north), "the cluster is not held to be at fault"
    assert {node for _, nodes in Hold.objects.get(attempt=2).nodes for node in nodes} == {"a", "c", "d"}


def test_the_preview_says_that_a_gang_would_wait_and_touches_nothing(north):
    runs(nodes="abcd")
    assert outcomes("d") == {"llama": ("Runs", "Waits", "")}
    assert not NodeExclusion.objects.exists() and Job.objects.get().state == "Running"


def test_jobs_of_other_nodes_and_a_job_that_was_moved_meanwhile_stay(north, monkeypatch):
    runs("llama", nodes="ab")
    runs("mistral", nodes="cd")
    drain(north, "c")
    after_listing(monkeypatch, lambda: Job.objects.filter(name="mistral").update(attempt=2))
    assert health.check(NOW) == 0
    assert not Attempt.objects.exclude(ended_at=None).exists()


def test_it_follows_the_pace_of_the_cluster_and_ends_when_the_node_takes_pods_again(north):
    first = runs("llama", nodes="ab")
    second = runs("mistral", nodes="cd")
    Pod.objects.filter(job_uid=second.uid).update(node="a")
    Job.objects.filter(pk=second.pk).update(priority=first.priority + 1)
    Cluster.objects.filter(pk=north.pk).update(labels=north.labels | {eviction_rate.PER_MINUTE: "1"})
    drain(north, "a")
    assert health.check(NOW) == 1 and health.check(NOW + timedelta(seconds=20)) == 0
    assert (books.job("mistral").state, books.job("llama").state) == ("Moving", "Running")
    node_exclusions.include(north, "a", by="ada", now=NOW)
    assert health.check(NOW + timedelta(minutes=2)) == 0 and not NodeExclusion.objects.filter(drains=True).exists()


def test_a_drain_outlives_a_second_exclusion_and_waits_while_the_cluster_is_silent(north):
    runs()
    drain(north)
    until = NOW + timedelta(hours=1)
    row = node_exclusions.exclude(north, "b", "for an hour", until, by="bob", now=NOW)
    assert (row.drains, row.message) == (True, "drained by ada: new fans")
    assert row.until == NOW + node_exclusions.LONGEST_BY_HAND, "it is not opened amid the maintenance"
    with pytest.raises(Conflict, match="node b of north is drained"):
        node_exclusions.cordon(north, "b", "", by="bob", now=NOW)
    Cluster.objects.update(state=Cluster.State.UNKNOWN)
    assert drained_nodes.move(NOW) == 0
    Cluster.objects.update(state=Cluster.State.READY)
    assert drained_nodes.move(NOW) == 1


def test_nothing_leaves_for_what_nobody_watches_any_more(north, monkeypatch):
    runs()
    drain(north)
    hours_ago, now = NOW - timedelta(hours=3), NOW + timedelta(seconds=1)
    Cluster.objects.update(watched_since=hours_ago, watched_until=hours_ago)
    assert drained_nodes.move(now) == 0
    Cluster.objects.update(watched_until=now)
    for change in (
        lambda: Cluster.objects.update(state=Cluster.State.UNKNOWN),
        lambda: Cluster.objects.update(state=Cluster.State.READY, watched_until=hours_ago),
        lambda: Pod.objects.filter(node="b").update(node="d"),
    ):
        with monkeypatch.context() as patched:
            after_listing(patched, change)
            assert drained_nodes.move(now) == 0
        Cluster.objects.update(state=Cluster.State.READY, watched_until=now)
    assert books.job("llama").state == "Running"


def test_a_pass_looks_at_drained_nodes_with_jobs_alone_and_ends_with_the_pace(
    north, django_assert_num_queries, monkeypatch
):
    for node in "abcd":
        drain(north, node)
    with django_assert_num_queries(1):
        assert drained_nodes.move(NOW) == 0
    node_exclusions.include(north, "a", by="ada", now=NOW)
    node_exclusions.include(north, "b", by="ada", now=NOW)
    runs("llama", nodes="ab")
    Pod.objects.update(node="c")
    again = Job.objects.get()
    for name in ("mistral", "gemma"):
        again.pk, again.uid, again.name, again._state.adding = None, uuid4(), name, True
        again.save()
        about = {"namespace": "default", "name": name, "uid": name, "phase": "Running", "created_at": NOW}
        Pod.objects.create(cluster=north, job_uid=again.uid, attempt=1, node="d", **about)
    Cluster.objects.filter(pk=north.pk).update(labels=north.labels | {eviction_rate.PER_MINUTE: "1"})
    assert eviction_rate.allow(Cluster.objects.get(), NOW), "another job has left"
    locked, lock = [], drained_nodes.lock_jobs
    monkeypatch.setattr(drained_nodes, "lock_jobs", lambda rows: locked.append(rows) or lock(rows))
    assert drained_nodes.move(NOW) == 0
    assert len(locked) == 1, "the first that may not leave is the last that is looked at"


def test_a_pass_that_slept_does_not_begin_the_minute_of_the_pace_anew(north, monkeypatch):
    runs()
    drain(north)
    Cluster.objects.filter(pk=north.pk).update(labels=north.labels | {eviction_rate.PER_MINUTE: "1"})
    later, slept = NOW + timedelta(seconds=90), timedelta(seconds=100)

    def sleep():
        eviction_rate.allow(Cluster.objects.get(), later)
        monkeypatch.setattr(drained_nodes.clock, "now", lambda: began + slept)

    began = drained_nodes.clock.now()
    after_listing(monkeypatch, sleep)
    assert drained_nodes.move(NOW) == 0 and EvictionWindow.objects.get().ends_at == later + timedelta(minutes=1)


def test_a_fault_of_a_node_whose_drain_an_older_process_ended_moves_no_job(north):
    runs()
    row = drain(north)
    for count in (node_exclusions.report, node_exclusions.count):
        NodeExclusion.objects.filter(pk=row.pk).update(ended_at=NOW, drains=True, faults=5)
        later = NOW + timedelta(minutes=20 if count is node_exclusions.report else 40)
        fault = node_exclusions.Fault(f"{count}", later, ExclusionReason.NODE_PROBLEM, "a fan stands still")
        assert count(north, "b", fault, later)
        row.refresh_from_db()
        assert row.ended_at is None and not row.drains


def test_a_rolling_drain_of_all_nodes_uses_no_budget_of_the_job(north):
    job = runs()
    for number in range(1, 30):
        fields = {"placed_at": NOW, "ended_at": NOW, "outcome": "Drained", "cluster_name": "north"}
        Attempt.objects.create(job=job, number=100 + number, **fields)
    drain(north)
    assert health.check(NOW) == 1 and books.job("llama").state == "Moving"
