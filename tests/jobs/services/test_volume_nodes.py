"""The pods of a job go to nodes that reach the volumes of their claims, or the job waits and says which claim it is."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.changes import events
from fleet.kube.resources import PYTORCH_JOBS, VOLUME_CLAIMS, VOLUMES
from fleet.member.errors import MemberAway
from fleet.models import Hold
from jobs.core.gang import requirements
from jobs.core.reasons import Code
from jobs.models import ClaimLocation, Job
from jobs.services.follow import volume_nodes
from jobs.services.inspect import explaining
from jobs.services.scheduling import loop
from jobs.services.submission.changes import actions
from tests.jobs.services.claims import claim, job
from tests.support import books
from tests.support.passive import passive_member
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
HOSTNAME = "kubernetes.io/hostname"
NODES = ("n1", "n2", "n3")


@pytest.fixture
def north(tmp_path):
    with passive_member(tmp_path, "north") as made:
        made.cluster.nodes.all().delete()
        for name in NODES:
            offered = {"cpu": 10**6, "memory": 2**50, "nvidia.com/gpu": 8, "pods": 10**4}
            made.cluster.nodes.create(
                name=name, ready=True, allocatable=offered, labels={HOSTNAME: name, "zone": name[-1]}
            )
        yield made


def go(north) -> None:
    books.cycle()
    north.work(PYTORCH_JOBS)


def bind(north, *terms, name: str = "ckpt", volume: str = "pv-1") -> None:
    """As the member's controllers do it: the claim has a volume, which nodes with these labels reach."""
    required = {"nodeSelectorTerms": [{"matchExpressions": [term]} for term in terms]}
    affinity = {"nodeAffinity": {"required": required}} if terms else {}
    body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume}, "spec": affinity}
    north.client.create(VOLUMES.path(), body)
    north.client.merge_patch(VOLUME_CLAIMS.path("default", name), {"spec": {"volumeName": volume}})


def on(*nodes: str) -> dict:
    return {"key": HOSTNAME, "operator": "In", "values": list(nodes)}


def read(after_s: float = 0) -> list[bool]:
    now = timezone.now() + timedelta(seconds=after_s)
    return [volume_nodes.read(row.pk, now) for row in ClaimLocation.objects.order_by("name")]


def started(north, *mounts: str) -> None:
    books.apply(*map(claim, mounts), job("llama", *mounts))
    go(north)
    assert books.job("llama").state == Job.State.DISPATCHED


def again(north, name: str = "llama") -> None:
    for act in (actions.suspend, actions.resume):
        act(books.job(name), by="test", now=timezone.now())
        go(north)


def nodes_of(name: str) -> set[str]:
    hold = Hold.objects.get(job_uid=books.job(name).uid, released_at=None)
    return {node for _, nodes in hold.nodes for node in nodes}


def test_it_starts_again_on_the_node_that_has_its_volume(north):
    started(north, "ckpt")
    bind(north, on("n3"))
    assert read() == [True]
    again(north)
    assert nodes_of("llama") == {"n3"}
    assert read(after_s=3600) == [False], "it is as before"


def test_while_that_node_is_full_it_waits_and_names_the_claim(north):
    north.cluster.nodes.filter(name="n2").update(requested={"nvidia.com/gpu": 8})
    started(north, "ckpt")
    bind(north, {"key": "zone", "operator": "In", "values": ["2"]})
    read()
    again(north)
    waiting = books.job("llama")
    assert waiting.reason_code == Code.NO_CLUSTER_FITS
    explained = explaining.explain_job(waiting, timezone.now())
    for message in (waiting.reason["message"], *(cluster.message for cluster in explained.clusters)):
        assert "the volume of claim default/ckpt is reached from 1 of its 3 nodes" in message


def test_of_nodes_with_a_taint_it_says_how_many_reach_the_volume(north):
    started(north, "ckpt")
    bind(north, on("n3"))
    read()
    north.cluster.nodes.update(taints=[{"key": "gpu", "effect": "NoSchedule", "value": ""}])
    loop._idle_caches.clear()
    again(north)
    explained = explaining.explain_job(books.job("llama"), timezone.now())
    assert "the volume of claim default/ckpt is reached from 1 of its 3 nodes" in explained.clusters[0].message


def test_two_volumes_on_two_nodes_leave_no_node_for_a_pod_of_both(north):
    started(north, "ckpt", "data")
    bind(north, on("n1"))
    bind(north, on("n2"), name="data", volume="pv-2")
    assert read() == [True, True]
    again(north)
    waiting = books.job("llama")
    assert waiting.reason_code == Code.NO_CLUSTER_FITS
    assert "do not reach the volume of claim default/ckpt" in waiting.reason["message"]


def test_roles_that_do_not_mount_it_go_anywhere(north):
    body = yaml.safe_load(pytorch_job("llama", workers=2, gpus=8))
    body = yaml.safe_load(yaml.safe_dump(body))
    master = yaml.safe_load(yaml.safe_dump(body["spec"]["pytorchReplicaSpecs"]["Master"]))
    master["template"]["spec"]["volumes"] = [{"name": "ckpt", "persistentVolumeClaim": {"claimName": "ckpt"}}]
    body["spec"]["pytorchReplicaSpecs"]["Master"] = master
    books.apply(claim(), yaml.safe_dump(body))
    go(north)
    bind(north, on("n2"))
    read()
    again(north)
    assert nodes_of("llama") == set(NODES)


def test_a_volume_that_every_node_reaches_restricts_nothing(north):
    started(north, "ckpt")
    bind(north)
    assert read() == [True]
    assert ClaimLocation.objects.get().node_terms == [] and read(after_s=3600) == [False], "nothing else is known"


def test_a_claim_that_is_not_bound_yet_is_asked_for_again_later_and_by_one_worker_at_a_time(north):
    started(north, "ckpt")
    assert read() == [False]
    bind(north, on("n1"))
    assert read() == [False] and ClaimLocation.objects.get().node_terms is None
    volume_nodes.request_due(timezone.now())
    assert read(after_s=30) == [True] and ClaimLocation.objects.get().node_terms == [[[HOSTNAME, "In", ["n1"]]]]


def stuck(north) -> None:
    """It waits for the node that has its volume, which is gone."""
    started(north, "ckpt")
    bind(north, on("n3"))
    read()
    north.cluster.nodes.filter(name="n3").delete()
    loop._idle_caches.clear()
    again(north)
    assert books.job("llama").reason_code == Code.NO_CLUSTER_FITS


def test_a_claim_that_was_deleted_in_the_cluster_keeps_no_job_waiting(north, monkeypatch):
    stuck(north)
    north.client.delete(VOLUME_CLAIMS.path("default", "ckpt"))
    asked = []
    monkeypatch.setattr(events, "enqueue", lambda *task: asked.append(task))
    volume_nodes.request_due(timezone.now() + timedelta(hours=1))
    assert asked == [("jobs.read_volume", ClaimLocation.objects.get().pk)]
    monkeypatch.undo()
    assert read(after_s=3600) == [True] and not ClaimLocation.objects.exists()
    go(north)
    assert books.job("llama").state == Job.State.DISPATCHED


@pytest.mark.parametrize("has_volume", [True, False])
def test_a_claim_that_was_made_anew_is_reached_from_other_nodes(north, has_volume):
    stuck(north)
    path = VOLUME_CLAIMS.path("default", "ckpt")
    made = north.client.get(path)
    north.client.delete(path)
    north.client.create(
        VOLUME_CLAIMS.path("default"),
        {**made, "metadata": {"name": "ckpt", "namespace": "default"}, "spec": {"accessModes": ["ReadWriteOnce"]}},
    )
    if has_volume:
        bind(north, on("n2"), volume="pv-2")
    assert read(after_s=3600) == [True]
    assert ClaimLocation.objects.filter(node_terms__isnull=not has_volume).exists()
    go(north)
    assert books.job("llama").state == Job.State.DISPATCHED
    assert nodes_of("llama") <= ({"n2"} if has_volume else {"n1", "n2"})


def test_a_volume_that_is_gone_while_its_claim_is_there_changes_nothing(north):
    stuck(north)
    north.client.delete(VOLUMES.path(name="pv-1"))
    assert read(after_s=3600) == [False] and ClaimLocation.objects.get().node_terms == [[[HOSTNAME, "In", ["n3"]]]]


def test_what_is_known_is_not_asked_for_again_while_no_job_waits(north, monkeypatch):
    started(north, "ckpt")
    bind(north, on("n3"))
    read()
    asked = []
    monkeypatch.setattr(events, "enqueue", lambda *task: asked.append(task))
    volume_nodes.request_due(timezone.now() + timedelta(hours=1))
    assert asked == []


def test_a_claim_of_a_copy_is_not_forgotten_while_the_copy_is_there(north):
    """As when the claim is deleted while a job is sent with it."""
    started(north, "ckpt")
    bind(north, on("n3"))
    read()
    north.client.delete(VOLUME_CLAIMS.path("default", "ckpt"))
    assert read(after_s=3600) == [False] and ClaimLocation.objects.exists()


def test_members_that_hang_leave_threads_for_the_rest(north, monkeypatch):
    """While two claims are read by a process it begins no third, which stays due."""
    started(north, "a", "b", "c")
    open_reads, seen = [], []

    def hangs(location, _path):
        open_reads.append(location.name)
        seen.append(list(open_reads))
        read()
        open_reads.pop()
        raise MemberAway("it hangs")

    monkeypatch.setattr(volume_nodes, "_get", hangs)
    read()
    assert sorted(reads[-1] for reads in seen) == ["a", "b", "c"] and max(map(len, seen)) == 2


@pytest.mark.parametrize(
    "spec", [None, 3, {"nodeAffinity": []}, {"nodeAffinity": {"required": {"nodeSelectorTerms": [3]}}}]
    + [{"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": 3, "values": [None]}]}]}}}]
)  # fmt: skip
def test_what_cannot_be_read_of_a_volume_restricts_nothing(spec):
    assert requirements.volume_terms({"spec": spec}) == []
