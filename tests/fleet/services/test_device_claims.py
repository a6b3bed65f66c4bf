"""The devices of a member that pods have by claims, as the watch writes them: which nodes have them, and how many are taken."""

import uuid

import pytest
from django.utils import timezone

from fleet.core.members import marks
from fleet.core.members.observed import Mark, ObservedNode, ObservedPod, OwnPod
from fleet.kube.resources import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from fleet.models import Cluster, Node, Pod
from fleet.services.members import member_facts, signing
from fleet.services.watching.node_pod_sync import NodePodSync
from simulator.member import define_in
from tests.support.device_claims import GPUS, allocated, device_class, resource_slice, template
from tests.support.members import add_node, add_pod, api, eventually, join

pytestmark = pytest.mark.django_db(transaction=True)
JOB = str(uuid.uuid4())


@pytest.fixture
def devices(north):
    define_in(north.catalog, {"resource.k8s.io": "v1"})
    add_node(north, "n1", gpus=0)
    client = api(north)
    client.create(DEVICE_CLASSES.path(), device_class())
    client.create(RESOURCE_SLICES.path(), resource_slice("n1"))
    return client


def node():
    row = Node.objects.filter(name="n1").first()
    return row and (row.allocatable.get(GPUS, 0), row.requested.get(GPUS, 0))


def claim(client, name: str, *taken) -> None:
    client.create(RESOURCE_CLAIMS.path("team"), template(name, kind="ResourceClaim"))
    if taken:
        client.merge_patch(RESOURCE_CLAIMS.path("team", name, "status"), {"status": allocated(*taken)})


def test_a_node_has_the_devices_of_its_slices_from_the_first_row_on_and_claims_take_them(north, devices, watching):
    join(north)
    watching()
    assert eventually(node) == (8, 0)
    claim(devices, "llama-0", ("n1", "gpu-0"), ("n1", "gpu-1"))
    eventually(lambda: node() == (8, 2))
    devices.delete(RESOURCE_CLAIMS.path("team", "llama-0"))
    eventually(lambda: node() == (8, 0))
    devices.delete(RESOURCE_SLICES.path(name="n1-gpus-1"))
    eventually(lambda: node() == (0, 0))


def test_a_pod_of_a_job_is_bound_only_once_its_devices_are_counted(north, devices, watching):
    """Its hold would end before: for a moment its devices would be given twice."""
    row = join(north)
    watching()
    eventually(node)
    ours = {marks.JOB_UID: JOB, marks.ATTEMPT: "1", marks.POD_MARK: signing.sign_pods(row, JOB, 1, "team")}
    add_pod(north, "llama-0", labels=ours)
    eventually(lambda: Pod.objects.filter(name="llama-0").exists())
    claimed = {"resourceClaimStatuses": [{"name": "gpus", "resourceClaimName": "late"}]}
    devices.merge_patch(PODS.path("team", "llama-0", "status"), {"status": claimed})
    devices.create(PODS.path("team", "llama-0", "binding"), {"target": {"kind": "Node", "name": "n1"}})
    add_pod(north, "after", "n1", labels=ours)
    eventually(lambda: Pod.objects.filter(name="after", node="n1").exists())
    assert Pod.objects.get(name="llama-0").node == ""
    claim(devices, "late", ("n1", "gpu-0"))
    eventually(lambda: Pod.objects.get(name="llama-0").node == "n1")
    assert node() == (8, 1)


def test_a_list_of_pods_that_is_ahead_of_the_claims_binds_none_either():
    fields = {"access": {}, "state": Cluster.State.READY, "state_since": timezone.now(), "joined_at": timezone.now()}
    sync = NodePodSync(Cluster.objects.create(name="north", **fields).pk)
    sync.ledger.devices.switch(on=True)
    sync.list_nodes([ObservedNode("n1", True, False, {}, [], {"cpu": 1000})])
    own = OwnPod(Mark(uuid.UUID(JOB), 1), "uid-1", "Worker", 0, "Pending", 0, 1, 0, "", "", timezone.now(), None)
    pod = ObservedPod("team", "llama-0", "n1", True, {"cpu": 100}, own, ("late",))

    def written():
        sync.see_allocated()
        sync.write(timezone.now())
        return Pod.objects.get().node, Node.objects.get().requested.get("cpu", 0)

    for _ in range(2):
        sync.list_pods([pod])
        assert written() == ("", 0)
    taken = {("team", "late"): (("gpu.nvidia.com", "n1", "gpu-0"),)}
    sync.ledger.devices.update_claims(taken, listed=True)
    assert written() == ("n1", 100)
    sync.ledger.devices.update_claims({}, listed=True)
    sync.list_pods([pod])
    assert written() == ("n1", 100)


@pytest.mark.parametrize("kind", [RESOURCE_SLICES, RESOURCE_CLAIMS], ids=["slices", "claims"])
def test_a_member_that_refuses_to_show_them_is_followed_without_them(north, devices, watching, kind):
    row = join(north)
    north.catalog.remove(kind.group, kind.version, kind.plural)
    watching()
    assert eventually(node) == (0, 0)
    add_node(north, "n2")
    eventually(lambda: Node.objects.filter(name="n2").exists())
    eventually(lambda: Cluster.objects.get().watched_until)
    rights = {(each["verb"], each["resource"]) for each in row.permissions if "ResourceClaims" in each["needed_for"]}
    assert ("watch", "resourceslices.resource.k8s.io") in rights and member_facts.serves(row.apis, RESOURCE_CLAIMS)
