"""A node that failed a job is not met by it again, and one that fails jobs again and again by nobody, until its lease ends."""

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connection
from django.utils import timezone

from fleet.core.node_exclusions import ExclusionReason
from fleet.member.client import Access
from fleet.models import Event, Hold, Node, NodeExclusion, Pod
from fleet.services.clusters import node_exclusions
from fleet.services.clusters.node_exclusions import Fault
from fleet.services.members import member_clients
from jobs.models import Attempt, Work
from jobs.services.follow import diagnosing, sweep
from jobs.services.follow.timeouts import health
from jobs.services.inspect import explaining
from jobs.services.scheduling import loop
from jobs.services.scheduling.decisions import apply
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def no_cache_of_another_test():
    loop._idle_caches.clear()


@pytest.fixture
def north():
    """Two nodes, bad and good; a whole job fits on either."""
    cluster = books.a_cluster("north")
    first = cluster.nodes.get()
    cluster.nodes.update(name="bad", labels={"kubernetes.io/hostname": "bad"})
    labels = {"kubernetes.io/hostname": "good.local"}
    cluster.nodes.create(name="good", ready=True, allocatable=first.allocatable, labels=labels)
    return cluster


def started(name="llama", **fields):
    books.apply(pytorch_job(name, workers=2, **fields))
    books.cycle()
    books.sent()
    books.report(name, "Running")
    return books.job(name)


def nodes_of(job):
    held = Hold.objects.get(job_uid=job.uid, attempt=job.attempt)
    return {name for _, names in held.nodes for name in names}


def ends_on(job, node, **fields):
    """A pod of the job ended on the node, as the member shows it, and the job failed."""
    ended = {"terminated": {"exitCode": 1, "finishedAt": "2026-11-20T10:00:00Z", "message": fields.pop("says", "")}}
    known = {
        "uid": f"{job.name}-{job.attempt}", "job_uid": job.uid, "attempt": job.attempt, "node": node, "phase": "Failed",
        "exit_code": 1, "created_at": timezone.now(),
        "details": json.dumps({"containers": [{"name": "pytorch", "state": ended, "restartCount": 0}]}),
    }  # fmt: skip
    Pod.objects.create(cluster=job.cluster, namespace="default", name=f"{job.name}-{job.attempt}", **known | fields)
    books.report(job.name, "Failed")


def moved(job):
    """It leaves its cluster at once, its copy goes, and the scheduler looks again."""
    health.check(timezone.now() + timedelta(seconds=1))
    books.gone(job.name)
    books.cycle(timezone.now() + timedelta(seconds=2))
    return books.job(job.name)


def look_of(job, now=None):
    [look] = explaining.explain_job(job, now or timezone.now()).clusters
    return look


def lost(job):
    """The node of the job is lost, and back before the job is placed again. Returns its name."""
    [node] = nodes_of(job)
    books.tolerating(job.name, seconds=600)
    Node.objects.filter(name=node).update(ready=False)
    ends_on(job, node)
    Node.objects.filter(name=node).update(ready=True)
    return node


def excluded(cluster, node, now=None, uid=None, key="k", at=None, reason=ExclusionReason.INFRASTRUCTURE):
    now = now or timezone.now()
    return node_exclusions.report(cluster, node, Fault(key, at or now, reason, "GpuUnhealthy"), now, uid)


def test_a_lost_node_is_not_met_again_by_its_job_once_it_is_back(north):
    job = started()
    node = lost(job)
    job = moved(job)
    assert job.attempt == 2 and nodes_of(job) == {"bad", "good"} - {node}
    hostname = Node.objects.get(name=node).labels["kubernetes.io/hostname"]
    assert Work.objects.get(job_uid=job.uid, attempt=2).avoided_nodes == [hostname]
    [row] = node_exclusions.in_force()
    assert (row.node, row.job_uid, row.reason) == (node, job.uid, "Infrastructure")
    assert "excluded for this job" in Event.objects.get(reason="NodeExcluded").message


def test_a_job_waits_with_the_reason_until_the_lease_of_its_only_node_ends(north):
    north.nodes.get(name="bad").delete()
    job = started()
    lost(job)
    job = moved(job)
    assert job.state == "Moving" and job.attempt == 1
    verdict = job.reason["clusters"][0]
    assert (verdict["code"], verdict["short"]) == ("NodesExcluded", {books.GPU: 3})
    assert "node good is excluded until" in verdict["message"] and "failed there" in verdict["message"]
    look = look_of(job)
    assert (look.code, look.never) == ("NodesExcluded", False)
    later = timezone.now() + 2 * HOUR
    sweep.run(later)
    books.cycle(later)
    assert books.job("llama").attempt == 2


def test_what_a_log_says_excludes_the_node_for_its_own_job_alone(north):
    """A tenant writes its own log: however many of its jobs say so, nobody else loses the node."""
    north.access = member_clients.stored(Access("https://127.0.0.1:1"))
    north.save()
    for number in range(5):
        job = started(f"llama-{number}")
        [node] = nodes_of(job)
        books.tolerating(job.name, seconds=600)
        ends_on(job, node, says="NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")
        Attempt.objects.filter(job=job).update(log_tries=9)
        diagnosing.run(job.uid, 1, timezone.now() + timedelta(seconds=1))
        assert NodeExclusion.objects.filter(job_uid=job.uid, node=node, reason="GpuFault").exists()
        books.gone(job.name)
        books.cycle(timezone.now() + timedelta(seconds=2))
        assert nodes_of(books.job(job.name)) == {"bad", "good"} - {node}
        books.sent()
        books.end(job.name)
    assert node_exclusions.for_everyone() == {}
    assert not NodeExclusion.objects.filter(job_uid=None).exists()


def test_a_node_that_fails_jobs_again_and_again_is_excluded_for_everyone_until_its_lease_ends(north):
    now = timezone.now()
    faults = [
        Fault(f"job-{n}", now + n * HOUR, ExclusionReason.INFRASTRUCTURE, "lost", {"job": "a/b"}) for n in range(3)
    ]
    assert [node_exclusions.count(north, "bad", fault, fault.at) for fault in faults] == [False, False, True]
    assert not node_exclusions.count(north, "bad", faults[2], now + 3 * HOUR), "a repeated report counts once"
    [(place, text)] = node_exclusions.for_everyone().items()
    assert place == (north.pk, "bad") and "failed 3 times within 24 h" in text and "a/b" not in text
    assert nodes_of(started()) == {"good"}
    node_exclusions.settle(now + 7 * HOUR)
    assert node_exclusions.for_everyone() == {}


def test_maintenance_is_no_fault_and_hides_none(north):
    now = timezone.now()
    node_exclusions.cordon(north, "bad", "", by="ada", now=now)
    node_exclusions.include(north, "bad", by="ada", now=now + HOUR / 60)
    faults = [Fault(f"job-{n}", now + n * HOUR + HOUR / 30, ExclusionReason.INFRASTRUCTURE, "lost") for n in range(3)]
    for fault in faults:
        node_exclusions.count(north, "bad", fault, fault.at)
    assert NodeExclusion.objects.get().faults == 3


def test_jobs_that_one_outage_of_a_node_takes_along_count_as_one_fault(north):
    now = timezone.now()
    for n in range(9):
        fault = Fault(f"job-{n}", now + timedelta(seconds=n), ExclusionReason.INFRASTRUCTURE, "lost")
        assert not node_exclusions.count(north, "bad", fault, fault.at)
    assert NodeExclusion.objects.get().faults == 1


def test_repeated_faults_exclude_a_share_of_the_cluster_at_the_most(north):
    """If all nodes fail jobs, it is not the nodes."""
    now = timezone.now()
    for n, node in ((n, node) for n in range(4) for node in ("bad", "good")):
        at = now + n * HOUR
        node_exclusions.count(north, node, Fault(f"{n}", at, ExclusionReason.INFRASTRUCTURE, "lost"), at)
    assert len(node_exclusions.for_everyone()) == 1


def test_an_exclusion_reaches_the_scheduler_and_its_end_frees_the_node(north):
    big = pytorch_job("big", workers=1, gpus=8)
    books.cycle()
    excluded(north, "bad")
    books.apply(big)
    books.cycle()
    waiting = books.job("big")
    assert waiting.reason["clusters"][0]["code"] == "NodesExcluded"
    assert "node bad is excluded" in waiting.reason["message"]
    node_exclusions.lift(NodeExclusion.objects.get(), by="ann", now=timezone.now())
    books.cycle()
    assert books.job("big").attempt == 1


def test_a_plan_that_is_older_than_an_exclusion_is_not_written(north, monkeypatch):
    books.apply(pytorch_job("llama", workers=2))
    planned = []
    write = apply.apply_plan

    def exclude_first(plan, *rest):
        if plan.placed and not planned:
            [decision] = plan.placed
            planned.extend({name for _, load in decision.placement.assignment.loads for name in load.names})
            excluded(north, planned[0])
        return write(plan, *rest)

    monkeypatch.setattr(apply, "apply_plan", exclude_first)
    books.cycle()
    books.cycle()
    assert nodes_of(books.job("llama")) == {"bad", "good"} - set(planned)


def test_a_lifted_exclusion_is_not_made_again_at_once_by_the_next_report(north):
    now = timezone.now()
    excluded(north, "bad")
    node_exclusions.lift(NodeExclusion.objects.get(), by="ann", now=now)
    assert excluded(north, "bad", now + HOUR, key="again")
    row = NodeExclusion.objects.get()
    assert row.ended_at and row.by == "ann" and node_exclusions.for_everyone() == {}
    assert excluded(north, "bad", now + 25 * HOUR, key="later")
    assert node_exclusions.for_everyone()


def test_a_node_that_registers_again_under_its_name_stays_excluded_until_the_lease_ends(north):
    excluded(north, "bad")
    row = north.nodes.get(name="bad")
    north.nodes.filter(name="bad").delete()
    north.nodes.create(name="bad", ready=True, allocatable=row.allocatable)
    assert nodes_of(started()) == {"good"}


def test_rows_of_the_ledger_are_forgotten_after_a_long_quiet(north):
    now = timezone.now()
    excluded(north, "bad", now)
    excluded(north, "good", now, uid=uuid.uuid4())
    node_exclusions.settle(now + 2 * HOUR)
    assert NodeExclusion.objects.count() == 2, "kept, because a fault soon after makes the next lease longer"
    node_exclusions.settle(now + 60 * HOUR)
    assert not NodeExclusion.objects.exists()


def test_a_clock_that_was_set_back_does_not_keep_a_node_away_for_days(north):
    now = timezone.now()
    excluded(north, "bad", now + timedelta(days=40))
    node_exclusions.settle(now)
    assert NodeExclusion.objects.get().until <= now + HOUR
    node_exclusions.settle(now + HOUR)
    assert node_exclusions.for_everyone() == {}


def test_two_processes_that_report_at_once_make_one_row_and_count_one_fault(north):
    now = timezone.now()
    fault = Fault("k", now, ExclusionReason.INFRASTRUCTURE, "GpuUnhealthy")
    start = Barrier(4)

    def report(_):
        try:
            start.wait(60)
            return node_exclusions.report(north, "bad", fault, now)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as processes:
        changed = list(processes.map(report, range(4)))
    assert sorted(changed) == [False, False, False, True]
    assert NodeExclusion.objects.get().faults == 1
