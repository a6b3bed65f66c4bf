"""Short-lived tokens of a real kube-apiserver, which the fleet asks for in the place of the one it was joined with."""

import base64
import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from fleet.kube.resources import NAMESPACES, SERVICE_ACCOUNTS
from fleet.member.client import MemberClient
from fleet.member.errors import MemberError
from fleet.models import Cluster, MemberCredentials
from fleet.services.clusters import clusters, member_tokens
from fleet.services.members import member_clients
from tests.realkube.control_plane import needs_realkube
from tests.realkube.member import RealMember

pytestmark = [*needs_realkube, pytest.mark.django_db(transaction=True)]
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


@pytest.fixture
def member(members: list[RealMember]) -> Iterator[RealMember]:
    """With a service account for the fleet that may do everything there."""
    client = members[0].client
    client.create(SERVICE_ACCOUNTS.path("default"), {"metadata": {"name": "fleet"}})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subjects = [{"kind": "ServiceAccount", "namespace": "default", "name": "fleet"}]
    client.create(BINDINGS, {"metadata": {"name": "fleet"}, "roleRef": role, "subjects": subjects})
    yield members[0]
    for path in (f"{BINDINGS}/fleet", SERVICE_ACCOUNTS.path("default", "fleet")):
        try:
            client.delete(path)
        except MemberError as e:
            assert e.status == 404


def join(member: RealMember) -> Cluster:
    body = {"spec": {"expirationSeconds": 7200}}
    token = member.client.create(SERVICE_ACCOUNTS.path("default", "fleet", "token"), body)["status"]["token"]
    document = member.kubeconfig()
    document["users"][0]["user"] = {"token": token}
    return clusters.join("north", yaml.safe_dump(document), by="test", now=timezone.now())


def tend(now=None) -> None:
    for thread in member_tokens.start(now or timezone.now()):
        thread.join(60)


def claims(token: str) -> dict:
    text = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def connected() -> MemberClient:
    return member_clients.connect(member_clients.access_of(Cluster.objects.get()))


def test_it_works_with_tokens_of_ten_minutes_and_renews_them(member, settings):
    settings.CONVOY_MEMBERS = type(settings.CONVOY_MEMBERS)(token_s=600)
    joined = join(member)
    tend()
    first = Cluster.objects.get().access["token"]
    row = MemberCredentials.objects.get()
    assert (row.reason, row.message) == ("TokenRequested", "tokens of default/fleet")
    assert claims(first)["sub"] == "system:serviceaccount:default:fleet"
    assert (
        claims(first)["exp"] - claims(first)["iat"]
        == 600
        < claims(joined.access["token"])["exp"] - claims(first)["iat"]
    )
    assert connected().list(NAMESPACES.path())["items"]
    tend(timezone.now() + timedelta(minutes=6))
    renewed = MemberCredentials.objects.get()
    # Of one second, tokens of this API server are alike.
    assert renewed.due_at > row.due_at and renewed.reason == "TokenRequested"
    assert connected().list(NAMESPACES.path())["items"]


def test_it_says_so_when_the_account_is_gone(member):
    joined = join(member)
    tend()
    member.client.delete(SERVICE_ACCOUNTS.path("default", "fleet"))
    Cluster.objects.update(failing_since=timezone.now())
    tend(timezone.now() + timedelta(minutes=1))
    row = MemberCredentials.objects.get()
    assert (row.reason, row.expires_at) == (
        "TokenRequestRefused",
        None,
    ) and Cluster.objects.get().access == joined.access
