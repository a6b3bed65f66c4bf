"""Which nodes count as lost, and what becomes of the pods and the gangs on them."""

import sys
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.core.members import observed
from fleet.models import Cluster, Event, Node, Pod
from fleet.services.watching.node_pod_sync import NodePodSync
from jobs.models import Work
from jobs.services.dispatch.members import lost_pods
from jobs.services.failover import lost_nodes
from tests.support import books
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db
UNREACHABLE = [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]
MINUTE = timedelta(minutes=1)


def manifest(node, ready, taints=()):
    status = {"conditions": [{"type": "Ready", "status": ready}], "allocatable": {"pods": "110"}}
    return {"metadata": {"name": node}, "spec": {"taints": list(taints)}, "status": status}


class Member:
    """A member as its watch writes it down."""

    def __init__(self):
        self.row = books.a_cluster("north")
        self.row.nodes.all().delete()
        self.now = timezone.now()
        self.begin()

    def begin(self):
        self.sync = NodePodSync(self.row.pk)
        self.sync.list_nodes([])
        self.sync.list_pods([])

    def says(self, ready="True", *nodes, taints=()):
        for node in nodes:
            self.sync.ledger.see_node(observed.node(manifest(node, ready, taints)))
        self.sync.write(self.now)

    def list_again(self, down):
        """By a new watch, with one of the four nodes not ready."""
        self.sync = NodePodSync(self.row.pk)
        self.sync.list_nodes([observed.node(manifest(name, "Unknown" if name == down else "True")) for name in "abcd"])
        self.sync.list_pods([])
        self.sync.write(self.now)

    def lost(self, after=timedelta()):
        self.now += after
        lost = lost_nodes.of(Cluster.objects.get(pk=self.row.pk), self.now)
        return {name: node.is_silent for name, node in lost.items()}


@pytest.fixture
def north():
    member = Member()
    member.says("True", "a", "b", "c", "d")
    return member


def test_a_node_is_lost_when_it_was_not_ready_for_a_while(north):
    north.says("Unknown", "a", taints=UNREACHABLE)
    north.says("False", "b")
    assert north.lost(timedelta(seconds=19)) == {}
    assert north.lost(timedelta(seconds=2)) == {"a": True, "b": False}


def test_a_node_that_returns_in_time_is_not_lost_and_its_next_loss_begins_anew(north):
    north.says("Unknown", "a")
    assert north.lost(timedelta(seconds=15)) == {}
    north.says("True", "a")
    assert Node.objects.get(name="a").not_ready_since is None
    north.now += MINUTE
    north.says("Unknown", "a")
    assert north.lost(timedelta(seconds=15)) == {}
    assert north.lost(timedelta(seconds=20)) == {"a": False}


def test_a_new_watch_goes_on_with_the_time_that_was_written(north):
    north.says("Unknown", "a")
    north.now += timedelta(seconds=20)
    north.list_again(down="a")
    assert north.lost(timedelta(seconds=11)) == {"a": False}


def test_a_node_that_a_former_version_wrote_down_counts_from_when_it_is_next_listed(north):
    north.says("Unknown", "a")
    Node.objects.filter(name="a").update(not_ready_since=None)
    Node.objects.filter(name="b").update(not_ready_since=north.now)
    north.now += MINUTE
    north.list_again(down="a")
    assert north.lost(timedelta(seconds=19)) == {}
    north.says("Unknown", "b")
    assert north.lost(timedelta(seconds=2)) == {"a": False}


def test_none_is_lost_when_most_of_a_cluster_are_not_ready_at_once(north):
    north.says("Unknown", "a", "b", "c")
    assert north.lost(MINUTE) == {}
    north.says("True", "c")
    assert north.lost() == {"a": False, "b": False}


def test_none_is_lost_in_a_cluster_that_does_not_answer_or_was_not_observed(north):
    north.says("Unknown", "a")
    rows = Cluster.objects.filter(pk=north.row.pk)
    rows.update(state=Cluster.State.UNKNOWN)
    assert north.lost(MINUTE) == {}
    rows.update(state=Cluster.State.READY)
    assert north.lost() == {"a": False}
    rows.update(watched_since=north.now, watched_until=north.now)
    assert north.lost(timedelta(minutes=10)) == {}


class Api:
    """Of a member: one pod of the copy, which is being deleted."""

    def __init__(self, node, *, leaving="2020-01-01T00:00:00Z"):
        metadata = {"name": "llama-worker-0", "namespace": "default", "uid": "u", "deletionTimestamp": leaving}
        self.pod, self.deleted = {"metadata": metadata, "spec": {"nodeName": node}}, []

    def list(self, path, params):
        return {"items": [self.pod]}

    def delete(self, path, **options):
        self.deleted.append((path, options))


def withdrawn(member, node, policy=""):
    """The work of a copy with a pod on that node."""
    books.apply(pytorch_job("llama", workers=0, gpus=0))
    job = books.job("llama")
    if policy:
        job.policy.manifest["metadata"]["annotations"] = {"convoy.dev/unreachable-cluster": policy}
        job.policy.save(update_fields=["manifest"])
    cluster = Cluster.objects.get(pk=member.row.pk)
    Pod.objects.create(
        cluster=cluster, namespace="default", name="llama-worker-0", job_uid=job.uid, attempt=1, node=node,
        phase="Running", created_at=member.now,
    )  # fmt: skip
    fields = {"job_uid": job.uid, "attempt": 1, "kind": "PyTorchJob", "namespace": "default", "name": "llama"}
    return job, Work(cluster=cluster, state=Work.State.WITHDRAWING, **fields)


def test_pods_that_nothing_ends_are_removed_from_lost_nodes_and_the_timeline_says_so(north):
    north.says("Unknown", "a", taints=UNREACHABLE)
    north.lost(MINUTE)
    (job, work), api = withdrawn(north, "a"), Api("a", leaving="2999-01-01T00:00:00Z")
    lost_pods.remove(api, work, job, north.now)
    assert api.deleted == [("/api/v1/namespaces/default/pods/llama-worker-0", {"uid": "u", "grace_s": 0})]
    assert "may run there" in Event.objects.get(reason=lost_pods.REMOVING).message


def test_the_timeline_says_so_too_when_the_worker_dies_before_a_pod_is_deleted(north, monkeypatch):
    north.says("Unknown", "a", taints=UNREACHABLE)
    north.lost(MINUTE)
    (job, work), api = withdrawn(north, "a"), Api("a")
    with monkeypatch.context() as dying, pytest.raises(SystemExit):
        dying.setattr(api, "delete", lambda *_, **__: sys.exit(1))
        lost_pods.remove(api, work, job, north.now)
    assert Event.objects.get(reason=lost_pods.REMOVING).message.startswith("Removing 1 pods")
    lost_pods.remove(api, work, job, north.now)
    assert len(api.deleted) == 1 and Event.objects.filter(reason=lost_pods.REMOVING).count() == 1


@pytest.mark.parametrize(("leaving", "count"), [("2999-01-01T00:00:00Z", 0), ("2020-01-01T00:00:00Z", 1), (None, 0)])
def test_a_kubelet_that_is_heard_from_has_the_grace_period_to_end_them(north, leaving, count):
    north.says("False", "a")
    north.lost(MINUTE)
    (job, work), api = withdrawn(north, "a"), Api("a", leaving=leaving)
    lost_pods.remove(api, work, job, north.now)
    assert len(api.deleted) == count


def test_a_copy_with_pods_on_a_node_that_may_become_lost_is_looked_at_again_soon(north):
    north.says("Unknown", "a", taints=UNREACHABLE)
    (job, work), api = withdrawn(north, "a"), Api("a")
    assert lost_pods.remove(api, work, job, north.now).wait_s == 2 and api.deleted == []
    north.says("True", "a")
    assert lost_pods.remove(api, work, job, north.now).wait_s is None


def test_pods_on_other_nodes_are_left_to_their_kubelets(north):
    north.says("Unknown", "a", taints=UNREACHABLE)
    north.lost(MINUTE)
    (job, work), api = withdrawn(north, "a"), Api("b")
    assert lost_pods.remove(api, work, job, north.now).wait_s == 2, "a pod of it is there, and may not be marked yet"
    assert api.deleted == []


@pytest.mark.parametrize("policy", ["Wait", "Fence"])
def test_a_policy_that_waits_for_clusters_waits_for_the_node_too(north, policy):
    north.says("Unknown", "a", taints=UNREACHABLE)
    north.lost(MINUTE)
    (job, work), api = withdrawn(north, "a", policy), Api("a")
    assert f"may run on a, lost, and the policy says convoy.dev/unreachable-cluster: {policy}" in str(
        lost_pods.remove(api, work, job, north.now)
    )
    assert api.deleted == []
