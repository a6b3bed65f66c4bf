"""A program's manifests in a real member, and its service account, as a person installs it with kubectl."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fleet.kube.resources import NAMESPACES, SERVICE_ACCOUNTS
from fleet.member.client import Access, MemberClient, Object
from fleet.member.errors import MemberError
from tests.realkube.member import RealMember

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Installed:
    """``name`` is that of the service account and of the program's objects, in the namespace ``home``."""

    def __init__(self, member: RealMember, home: str, name: str) -> None:
        self.member, self.home, self.name = member, home, name

    def path(self, kind: str) -> str:
        """Where objects of the kind are created."""
        return {
            "Namespace": NAMESPACES.path(),
            "ServiceAccount": SERVICE_ACCOUNTS.path(self.home),
            "ClusterRole": f"{_RBAC}/clusterroles",
            "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings",
            "Role": f"{_RBAC}/namespaces/{self.home}/roles",
            "RoleBinding": f"{_RBAC}/namespaces/{self.home}/rolebindings",
            "Deployment": f"/apis/apps/v1/namespaces/{self.home}/deployments",
        }[kind]

    def token(self) -> str:
        path = SERVICE_ACCOUNTS.path(self.home, self.name, "token")
        return str(self.member.client.create(path, {"spec": {"expirationSeconds": 3600}})["status"]["token"])

    @contextmanager
    def account(self) -> Iterator[MemberClient]:
        """A client with the rights of the program."""
        plane = self.member.plane
        client = MemberClient(Access(plane.url, ca_pem=plane.ca_pem, token=self.token()))
        yield client
        client.close()

    def may(self, verb: str, group: str, resource: str, namespace: str = "") -> bool:
        plain, _, subresource = resource.partition("/")
        about = {"verb": verb, "group": group, "resource": plain, "subresource": subresource, "namespace": namespace}
        with self.account() as client:
            answer = client.create(_REVIEWS, {"spec": {"resourceAttributes": about}})
        return bool(answer["status"]["allowed"])

    @contextmanager
    def running(self, home: Path, *command: str) -> Iterator[Path]:
        """The program as a process with the token of its service account alone; returns its log."""
        document = self.member.plane.kubeconfig()
        document["users"][0]["user"] = {"token": self.token()}
        (home / "kubeconfig").write_text(json.dumps(document))
        log, environment = home / "program.log", {**os.environ, "PYTHONUNBUFFERED": "1"}
        with log.open("ab") as out:
            arguments = [sys.executable, "-m", *command, "--kubeconfig", str(home / "kubeconfig")]
            process = subprocess.Popen(arguments, stdout=out, stderr=out, env=environment)
        try:
            yield log
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def installed(member: RealMember, documents: Sequence[Object], home: str, name: str) -> Iterator[Installed]:
    """All manifests are applied, and removed at the end; but a namespace is never quite gone."""
    made = Installed(member, home, name)
    for document in documents:
        try:
            member.client.create(made.path(document["kind"]), document)
        except MemberError as e:
            assert e.status == 409, e
    try:
        yield made
    finally:
        for document in reversed(documents):
            if document["kind"] != "Namespace":
                member.client.delete(f"{made.path(document['kind'])}/{document['metadata']['name']}")
