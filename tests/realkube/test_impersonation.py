"""Requests in the names of persons, at a real kube-apiserver: its RBAC decides by the person, and its audit log names them."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from django.utils import timezone

from fleet.errors import ConvoyError, InvalidInput
from fleet.kube.resources import NAMESPACES, Resource
from fleet.models import Cluster, Event, Grant
from fleet.services.authorization import access
from fleet.services.clusters import clusters
from jobs.models import Attempt
from jobs.services.submission import manifests, submit
from tests.realkube.builders import RealWorld
from tests.realkube.control_plane import needs_realkube
from tests.realkube.member import RealMember
from tests.support.people import person
from tests.support.world import POLICY, World, pytorch_job

pytestmark = [*needs_realkube, pytest.mark.django_db(transaction=True)]
ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
IN_NAMESPACE = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
ACCOUNT = "limited"
FLEET = f"system:serviceaccount:default:{ACCOUNT}"
ALL_BUT_IMPERSONATION = ["get", "list", "watch", "create", "update", "patch", "delete"]


class Guarded:
    """A member to which the fleet comes by an account that is no admin, and whose audit log is kept."""

    def __init__(self, member: RealMember) -> None:
        self._member, self.name, self.client, self.stop = member, member.name, member.client, member.stop
        self._created: list[str] = []
        self._create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": ACCOUNT}})
        answer = self.client.create(f"/api/v1/namespaces/default/serviceaccounts/{ACCOUNT}/token", {"spec": {}})
        self._token = answer["status"]["token"]
        self.grant(ACCOUNT, FLEET, [{"apiGroups": ["*"], "resources": ["*"], "verbs": ALL_BUT_IMPERSONATION}])

    def kubeconfig(self) -> dict[str, Any]:
        body: dict[str, Any] = self._member.kubeconfig()
        body["users"][0]["user"]["token"] = self._token
        return body

    def grant(self, name: str, user: str, rules: list[dict[str, Any]]) -> None:
        """In all namespaces."""
        self.role(name, rules)
        subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}
        self._create(BINDINGS.path(), {"metadata": {"name": name}, "roleRef": _role(name), "subjects": [subject]})

    def role(self, name: str, rules: list[dict[str, Any]]) -> None:
        self._create(ROLES.path(), {"metadata": {"name": name}, "rules": rules})

    def grant_group(self, namespace: str, role: str, group: str) -> None:
        subject = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": group}
        body = {"metadata": {"name": role}, "roleRef": _role(role), "subjects": [subject]}
        self._create(IN_NAMESPACE.path(namespace), body)

    def revoke(self) -> None:
        """Removes the account, the roles and their bindings: other tests use the same member."""
        while self._created:
            self.client.delete(self._created.pop())

    def _create(self, path: str, body: dict[str, Any]) -> None:
        self.client.create(path, body)
        self._created.append(f"{path}/{body['metadata']['name']}")

    def asked(self, verb: str, resource: str, namespace: str) -> list[tuple[str, str, int]]:
        """(account, in whose name, answer) of the requests in its audit log."""
        return [
            (line["user"]["username"], line.get("impersonatedUser", {}).get("username", ""), line["responseStatus"]["code"])
            for line in self._member.audit()
            if line["verb"] == verb and (of := line.get("objectRef", {})).get("resource") == resource
            and of.get("namespace") == namespace
        ]  # fmt: skip


def _role(name: str) -> dict[str, str]:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}


@pytest.fixture
def guarded(members: list[RealMember]) -> Iterator[Guarded]:
    members[0].clear()
    guarded = Guarded(members[0])
    yield guarded
    guarded.revoke()


@pytest.fixture
def fleet(world: World, guarded: Guarded) -> RealWorld:
    real = RealWorld(world, [guarded], "team-i")
    real.join(guarded.name)
    return real


def turned_on() -> Cluster:
    return clusters.set_impersonation(Cluster.objects.get(), True, by="ada", now=timezone.now())


def submitted(by: str, name: str) -> None:
    documents = [yaml.safe_load(POLICY), yaml.safe_load(pytorch_job(name, workers=0, duration="100h"))]
    for document in documents:
        document["metadata"]["namespace"] = "team-i"
    submit.apply(manifests.parse(yaml.safe_dump_all(documents).encode()), by=by, now=timezone.now())


def through_the_proxy(user: Any, path: str) -> int:
    from deploy.config.kube import application

    token = access.mint(user, "t", life=None, now=timezone.now())[1]
    path = "/apis/cluster.karmada.io/v1alpha1/clusters/north/proxy" + path
    headers = [(b"authorization", f"Bearer {token}".encode())]
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
    }
    messages: list[dict[str, Any]] = []
    bodies = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        return next(bodies, None) or await asyncio.Event().wait() or {}

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    asyncio.run(application()({**scope, "client": ("127.0.0.1", 1)}, receive, send))
    return int(messages[0]["status"])


def test_the_member_decides_by_the_person_and_its_audit_names_them(fleet: RealWorld, guarded: Guarded) -> None:
    mal = person("mal", (Grant.Role.EDITOR, "team-i"))
    guarded.client.create(NAMESPACES.path(), {"metadata": {"name": "team-i"}})
    warning = Event.objects.get(reason="RightsMissing").message
    assert "impersonate users" in warning and "impersonate groups" in warning
    with pytest.raises(InvalidInput, match="impersonate users, impersonate groups"):
        turned_on()
    assert through_the_proxy(mal, "/api/v1/namespaces/team-i/pods") == 200, "as the fleet's own account"
    guarded.grant(
        "impersonates", FLEET, [{"apiGroups": [""], "resources": ["users", "groups"], "verbs": ["impersonate"]}]
    )
    fleet.world.until(lambda: _turned_on(), "the right is granted")

    assert through_the_proxy(mal, "/api/v1/namespaces/team-i/pods") == 403
    assert guarded.asked("list", "pods", "team-i")[-1] == (FLEET, "convoy:mal", 403)
    submitted("mal", "llama")
    refused = Attempt.objects.filter(job__name="llama", outcome="Refused", message__contains="convoy:mal")
    fleet.world.until(refused.exists, "the member refuses the person")
    assert fleet.clusters_with("llama") == []

    guarded.role("trains", [
        {"apiGroups": ["kubeflow.org"], "resources": ["pytorchjobs"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    ])  # fmt: skip
    guarded.grant_group("team-i", "trains", "convoy:editor:team-i")
    submitted("mal", "whisper")
    fleet.world.expect("whisper", "Running", on="north")
    assert (FLEET, "convoy:mal", 201) in guarded.asked("create", "pytorchjobs", "team-i")
    assert through_the_proxy(mal, "/api/v1/namespaces/team-i/pods") == 200
    assert through_the_proxy(person("vic", (Grant.Role.VIEWER, "team-i")), "/api/v1/namespaces/team-i/pods") == 403
    fleet.world.delete("whisper")
    fleet.world.until(
        lambda: not fleet.clusters_with("whisper"), "what the fleet does by itself needs no right of the person"
    )


def _turned_on() -> bool:
    try:
        return turned_on().impersonation
    except ConvoyError:
        return False
