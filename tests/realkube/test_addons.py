"""The supervisor is installed in a real kube-apiserver from the fleet, by its manifests, and listed as the cluster knows it."""

from collections.abc import Iterator

import pytest
from django.utils import timezone

from fleet.kube.resources import PODS
from fleet.models import Cluster, Event
from fleet.services.members import member_addons
from tests.realkube.builders import RealWorld
from tests.realkube.control_plane import needs_realkube
from tests.realkube.member import RealMember
from tests.simulator.casting import until

pytestmark = [*needs_realkube, pytest.mark.django_db(transaction=True)]

DEPLOYMENT = "/apis/apps/v1/namespaces/arena-system/deployments/elastic-job-supervisor"
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/elastic-job-supervisor"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
IMAGE = "registry.example.com/convoy"


def install(cluster: Cluster, tag: str) -> tuple[str, int, int]:
    [addon] = member_addons.install(cluster, f"{IMAGE}:{tag}", by="ada", now=timezone.now())
    return addon.state, addon.ready, addon.pods


@pytest.fixture
def administrator(members: list[RealMember]) -> Iterator[None]:
    """The fleet's account may do everything in the first member: a program's roles are given by those who have them."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subjects = [{"kind": "ServiceAccount", "namespace": "convoy-system", "name": "convoy-fleet"}]
    members[0].client.create(BINDINGS, {"metadata": {"name": "installs"}, "roleRef": role, "subjects": subjects})
    yield
    members[0].client.delete(f"{BINDINGS}/installs")


@pytest.mark.usefixtures("administrator")
def test_it_is_installed_brought_up_to_date_and_listed_with_its_pods(real: RealWorld) -> None:
    [member] = real.join("north")
    cluster = Cluster.objects.get(name="north")
    assert [addon.state for addon in member_addons.of(cluster)] == ["NotInstalled"]
    assert install(cluster, "1") == install(cluster, "2") == ("NotReady", 0, 2)
    [container] = member.client.get(DEPLOYMENT)["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"{IMAGE}:2"
    assert "patch" in member.client.get(ROLE)["rules"][0]["verbs"]
    assert Event.objects.filter(reason="SupervisorInstalled", message__contains=f"{IMAGE}:2").count() == 1
    meta = {"name": "elastic-job-supervisor-0", "labels": {"app": "elastic-job-supervisor"}}
    spec = {"containers": [{"name": "supervisor", "image": f"{IMAGE}:2"}]}
    member.client.create(PODS.path("arena-system"), {"metadata": meta, "spec": spec})
    until(lambda: [(addon.state, addon.ready) for addon in member_addons.of(cluster)] == [("Running", 1)])
