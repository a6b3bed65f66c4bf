"""A node whose own conditions or taints say that it is faulty takes no pods until it has said otherwise for a while."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.core.members import observed
from fleet.models import Event, Hold, Node, NodeExclusion
from fleet.services.clusters import node_exclusions
from fleet.services.watching.node_pod_sync import NodePodSync
from jobs.services.follow import sweep
from jobs.services.scheduling import loop
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)
XID = {"type": "GpuXidError", "status": "True", "reason": "Xid79"}


@pytest.fixture(autouse=True)
def no_cache_of_another_test():
    loop._idle_caches.clear()


class Member:
    """A member as its watch writes it down."""

    def __init__(self):
        self.row = books.a_cluster("north")
        self.offered = self.row.nodes.get().allocatable
        self.row.nodes.all().delete()
        self.sync = NodePodSync(self.row.pk)
        self.sync.list_nodes([])
        self.sync.list_pods([])

    def says(self, node, *conditions, taints=()):
        ready = {"type": "Ready", "status": "True"}
        manifest = {
            "metadata": {"name": node, "labels": {"kubernetes.io/hostname": node}},
            "spec": {"taints": list(taints)},
            "status": {"conditions": [ready, *conditions], "allocatable": {"pods": "110"}},
        }
        seen = observed.node(manifest)
        seen.allocatable.update(self.offered)
        self.sync.ledger.see_node(seen)
        self.sync.write(timezone.now())


@pytest.fixture
def north():
    member = Member()
    member.says("bad")
    member.says("good")
    return member


def started(name, **fields):
    books.apply(pytorch_job(name, workers=2, **fields))
    books.cycle()
    job = books.job(name)
    return {node for held in Hold.objects.filter(job_uid=job.uid) for _, names in held.nodes for node in names}


def excluded():
    return {node for _, node in node_exclusions.for_everyone()}


def test_nothing_is_placed_on_a_node_from_when_its_monitor_says_so_until_a_lease_after_it_says_otherwise(north):
    now = timezone.now()
    north.says("bad", XID)
    sweep.run(now)
    [row] = NodeExclusion.objects.all()
    assert (row.node, row.job_uid, row.reason) == ("bad", None, "NodeProblem")
    assert "condition GpuXidError (Xid79)" in Event.objects.get(reason="NodeExcluded").message
    assert started("first") == {"good"}
    sweep.run(now + 2 * HOUR)
    assert excluded() == {"bad"}, "it goes on saying so: the lease is renewed"
    north.says("bad")
    sweep.run(now + 2.5 * HOUR)
    assert excluded() == {"bad"}, "one good look is not trusted yet"
    sweep.run(now + 4 * HOUR)
    assert excluded() == set()


def test_a_job_that_tolerates_every_taint_does_not_meet_a_node_with_a_taint_of_gpu_health(north):
    north.says("bad", taints=[{"key": "nvidia.com/gpu-xid-error", "value": "true", "effect": "NoSchedule"}])
    sweep.run(timezone.now())
    assert excluded() == {"bad"}


def test_a_node_that_flaps_is_away_for_longer_each_time(north):
    now = timezone.now()
    for n in range(3):
        at = now + n * 5 * HOUR
        north.says("bad", XID)
        sweep.run(at)
        north.says("bad")
        row = NodeExclusion.objects.get()
        assert (row.faults, row.until) == (n + 1, at + 2**n * HOUR)
        sweep.run(row.until)
        assert excluded() == set()


def test_what_most_nodes_say_of_themselves_is_a_fault_of_their_monitor(north):
    north.says("third", XID)
    north.says("bad", XID)
    sweep.run(timezone.now())
    assert excluded() == set()
    north.says("third")
    sweep.run(timezone.now())
    assert excluded() == {"bad"}


def test_what_most_nodes_come_to_say_ends_with_the_leases_that_the_first_of_them_have(north):
    """A wrong monitor is rolled out node by node."""
    now = timezone.now()
    north.says("bad", XID)
    sweep.run(now)
    assert excluded() == {"bad"}
    north.says("good", XID)
    sweep.run(now + 2 * HOUR)
    assert excluded() == set()
    north.says("good")
    sweep.run(now + 3 * HOUR)
    assert excluded() == {"bad"}


def test_a_node_that_a_person_lets_in_stays_in_whatever_it_says(north):
    now = timezone.now()
    north.says("bad", XID)
    sweep.run(now)
    node_exclusions.include(north.row, "bad", by="ann", now=now)
    for hours in (1, 2, 3):
        sweep.run(now + hours * HOUR)
    assert excluded() == set() and NodeExclusion.objects.get().faults == 1
    sweep.run(now + 25 * HOUR)
    assert excluded() == {"bad"}


def test_a_node_that_is_gone_with_its_problem_is_excluded_until_its_lease_ends(north):
    now = timezone.now()
    north.says("bad", XID)
    sweep.run(now)
    north.sync.ledger.lose_node("bad")
    north.sync.write(now)
    assert not Node.objects.filter(name="bad").exists() and excluded() == {"bad"}
    sweep.run(now + 2 * HOUR)
    assert excluded() == set()
