"""Nodes that are excluded for everyone are tainted in their member, where the cluster asks for it, and no longer than that."""

from contextlib import nullcontext
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.core.node_exclusions import ExclusionReason
from fleet.errors import Conflict
from fleet.kube.resources import NODES
from fleet.member.client import MemberClient
from fleet.member.errors import MemberAway, MemberDenied
from fleet.models import Cluster, Event, NodeExclusion
from fleet.services.clusters import clusters, node_exclusions
from fleet.services.clusters.node_exclusions import Fault
from fleet.services.watching import node_taints
from jobs.snapshot import facts_of
from tests.support.world import World

pytestmark = pytest.mark.django_db(transaction=True)
OWN = {"key": "convoy.dev/excluded", "value": "NodeProblem", "effect": "NoSchedule"}
FOREIGN = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


@pytest.fixture
def world(transactional_db, tmp_path):
    """A member that serves its API and does nothing else, with a node that has a taint of another's."""
    world = World(tmp_path)
    world.still("north", 8)
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}, "spec": {"taints": [FOREIGN]}}
    world.clients["north"].create(NODES.path(), body)
    asks("true")
    seen(world)
    yield world
    world.stop()


def asks(value: str) -> None:
    notes = {"convoy.dev/taint-excluded-nodes": value}
    clusters.set_annotations(Cluster.objects.get(), notes, by="ann", now=timezone.now())


def exclude() -> NodeExclusion:
    fault = Fault("k", timezone.now(), ExclusionReason.NODE_PROBLEM, "GpuUnhealthy")
    node_exclusions.report(Cluster.objects.get(), "node", fault, fault.at)
    return NodeExclusion.objects.get()


def taints(world: World) -> list[dict[str, str]]:
    return world.clients["north"].get(NODES.path(name="node"))["spec"].get("taints") or []


def seen(world: World) -> None:
    """The watch has seen the node as it is."""
    shown = [{"value": "", **{k: v for k, v in taint.items() if k != "timeAdded"}} for taint in taints(world)]
    Cluster.objects.get().nodes.update(taints=shown)


def visited(world: World, after_s: float = 0) -> int:
    changed = node_taints.visit(Cluster.objects.get().pk, timezone.now() + timedelta(seconds=after_s))
    seen(world)
    return changed


@pytest.fixture
def enqueued(monkeypatch):
    sent = []
    monkeypatch.setattr("fleet.changes.events.enqueue", lambda task, *args, **_: sent.append((task, *args)))
    return sent


def test_an_excluded_node_is_tainted_until_its_exclusion_ends_and_keeps_the_taints_of_others(world, enqueued):
    node_taints.request_due(timezone.now())
    assert enqueued == []
    excluded = exclude()
    enqueued.clear()
    node_taints.request_due(timezone.now())
    assert enqueued == [("fleet.taint_nodes", Cluster.objects.get().pk)]
    assert visited(world) == 1 and taints(world) == [FOREIGN, OWN]
    assert visited(world) == 0
    node_exclusions.lift(excluded, by="ann", now=timezone.now())
    assert visited(world) == 1 and taints(world) == [FOREIGN]


def test_no_node_is_tainted_where_the_cluster_does_not_ask_for_it(world, enqueued):
    clusters.set_annotations(Cluster.objects.get(), {}, by="ann", now=timezone.now())
    exclude()
    enqueued.clear()
    node_taints.request_due(timezone.now())
    assert enqueued == [] and visited(world) == 0


def test_a_cluster_that_no_longer_asks_for_it_loses_the_taints(world):
    exclude()
    visited(world)
    asks("false")
    assert visited(world) == 1 and taints(world) == [FOREIGN]


def test_an_exclusion_for_one_job_taints_nothing(world):
    fault = Fault("k", timezone.now(), ExclusionReason.NODE_CHECK, "it failed")
    job = "00000000-0000-0000-0000-000000000001"
    node_exclusions.report(Cluster.objects.get(), "node", fault, fault.at, job)
    assert visited(world) == 0


def test_what_is_changed_by_hand_is_set_right_in_both_directions(world):
    excluded = exclude()
    visited(world)
    client = world.clients["north"]
    client.merge_patch(NODES.path(name="node"), {"spec": {"taints": [FOREIGN]}})
    seen(world)
    assert visited(world) == 1 and taints(world) == [FOREIGN, OWN]
    node_exclusions.lift(excluded, by="ann", now=timezone.now())
    NodeExclusion.objects.all().delete()
    assert visited(world) == 1 and taints(world) == [FOREIGN], "also where the ledger has forgotten it"


def test_a_node_that_is_gone_or_was_seen_late_is_no_error(world):
    exclude()
    visited(world)
    Cluster.objects.get().nodes.update(taints=[])
    assert visited(world) == 0, "the member has the taint already"
    Cluster.objects.get().nodes.update(taints=[])
    world.clients["north"].delete(NODES.path(name="node"))
    assert node_taints.visit(Cluster.objects.get().pk, timezone.now()) == 0


@pytest.mark.parametrize(("error", "waits_s"), [(MemberDenied, 600), (MemberAway, 60)])
def test_a_member_that_forbids_it_or_is_away_is_left_alone_for_a_while(world, enqueued, monkeypatch, error, waits_s):
    exclude()
    enqueued.clear()

    def refuse(self, path):
        raise error("no")

    monkeypatch.setattr(MemberClient, "get", refuse)
    assert node_taints.visit(Cluster.objects.get().pk, timezone.now()) == 0
    monkeypatch.undo()
    assert Event.objects.filter(reason="NodesNotTainted").exists() is (error is MemberDenied)
    node_taints.request_due(timezone.now() + timedelta(seconds=waits_s - 30))
    assert not [task for task in enqueued if task[0] == "fleet.taint_nodes"]
    assert visited(world, waits_s - 30) == 0
    assert visited(world, waits_s + 30) == 1 and taints(world) == [FOREIGN, OWN]


def test_a_worker_that_died_is_followed_by_another_after_a_while(world):
    exclude()
    Cluster.objects.update(node_taints_due_at=timezone.now() + timedelta(seconds=50))
    assert visited(world) == 0
    assert visited(world, 60) == 1


def test_the_taint_itself_does_not_keep_jobs_off_once_the_exclusion_has_ended(world):
    node = Cluster.objects.get().nodes.get()
    node.taints = [OWN, FOREIGN]

    class Nowhere:
        def domain(self, _):
            return ()

    facts = facts_of(node, Nowhere(), {})
    assert [taint.key for taint in facts.taints] == ["nvidia.com/gpu"]


@pytest.mark.parametrize("force", [False, True])
def test_a_cluster_whose_nodes_would_keep_the_taint_is_detached_by_force_alone(world, force):
    exclude()
    visited(world)
    with pytest.raises(Conflict, match="would stay on 1 of its nodes") if not force else nullcontext():
        clusters.detach(Cluster.objects.get(), by="ann", now=timezone.now(), force=force)
    if not force:
        asks("false")
        visited(world)
        clusters.detach(Cluster.objects.get(), by="ann", now=timezone.now())
    assert not Cluster.objects.exists()


def test_a_cluster_that_no_longer_says_whether_it_is_to_be_tainted_keeps_no_taint_either(world):
    exclude()
    visited(world)
    clusters.set_annotations(Cluster.objects.get(), {}, by="ann", now=timezone.now())
    with pytest.raises(Conflict, match=r"would stay on 1 of its nodes.*convoy.dev/taint-excluded-nodes=false"):
        clusters.detach(Cluster.objects.get(), by="ann", now=timezone.now())


def test_a_cluster_that_does_not_answer_is_detached_with_the_taint(world):
    exclude()
    visited(world)
    Cluster.objects.update(state="NotReady")
    clusters.detach(Cluster.objects.get(), by="ann", now=timezone.now())
    assert taints(world) == [FOREIGN, OWN]
