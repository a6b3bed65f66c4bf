"""The pods of a job go to nodes that reach the volumes of their claims, or the job waits and says which claim it is."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.kube.resources import PYTORCH_JOBS, VOLUME_CLAIMS, VOLUMES
from fleet.models import Hold
from jobs.core.gang import requirements
from jobs.core.reasons import Code
from jobs.models import ClaimLocation, Job
from jobs.services.follow import volume_nodes
from jobs.services.inspect import explaining
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
    assert ClaimLocation.objects.get().node_terms == [] and read(after_s=3600) == [False]


def test_a_claim_that_is_not_bound_yet_is_asked_for_again_later_and_by_one_worker_at_a_time(north):
    started(north, "ckpt")
    assert read() == [False]
    bind(north, on("n1"))
    assert read() == [False] and ClaimLocation.objects.get().node_terms is None
    volume_nodes.request_due(timezone.now())
    assert read(after_s=30) == [True] and ClaimLocation.objects.get().node_terms == [[[HOSTNAME, "In", ["n1"]]]]


@pytest.mark.parametrize(
    "spec", [None, 3, {"nodeAffinity": []}, {"nodeAffinity": {"required": {"nodeSelectorTerms": [3]}}}]
    + [{"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": 3, "values": [None]}]}]}}}]
)  # fmt: skip
def test_what_cannot_be_read_of_a_volume_restricts_nothing(spec):
    assert requirements.volume_terms({"spec": spec}) == []
