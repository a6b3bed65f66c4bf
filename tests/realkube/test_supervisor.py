"""The supervisor on a real kube-apiserver with the rights of its manifests: they suffice for what it does, and nothing else."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from fleet.kube.resources import LEASES, NAMESPACES, NODES, PODS, PYTORCH_JOBS, SERVICE_ACCOUNTS
from fleet.member.client import Access, MemberClient, Object
from fleet.member.errors import MemberError, MemberMissing
from jobs.runtime import notices as notice
from supervisor.core.facts import MANAGED
from tests.realkube.control_plane import Etcd, needs_realkube
from tests.realkube.member import RealMember
from tests.simulator import casting
from tests.simulator.casting import until

pytestmark = needs_realkube

DOCUMENTS = list(yaml.safe_load_all(Path("deploy/supervisor-manifests/supervisor.yaml").read_text()))
HOME, NAME = "arena-system", "elastic-job-supervisor"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PATHS = {
    "Namespace": NAMESPACES.path(),
    "ServiceAccount": SERVICE_ACCOUNTS.path(HOME),
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "Service": f"/api/v1/namespaces/{HOME}/services",
    "Role": f"{RBAC}/namespaces/{HOME}/roles",
    "RoleBinding": f"{RBAC}/namespaces/{HOME}/rolebindings",
    "Deployment": f"/apis/apps/v1/namespaces/{HOME}/deployments",
}
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
TAINT = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
PATIENCE_S = 180.0


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealMember]:
    """A member that no fleet has joined."""
    home = tmp_path_factory.mktemp("supervised")
    etcd = Etcd(home / "etcd")
    made = RealMember("alone", home, etcd, 4, 4)
    etcd.start()
    try:
        made.start()
        yield made
    finally:
        made.close()
        etcd.stop()


@pytest.fixture
def member(alone: RealMember) -> Iterator[RealMember]:
    """With the manifests as they are shipped. No job of another test has left anything."""
    made = alone
    made.clear()
    for document in DOCUMENTS:
        try:
            made.client.create(PATHS[document["kind"]], document)
        except MemberError as e:
            assert e.status == 409, e  # a namespace is never quite gone
    yield made
    for node in made.client.list(NODES.path())["items"]:
        made.client.merge_patch(NODES.path(name=node["metadata"]["name"]), {"spec": {"taints": None}})
    for document in reversed(DOCUMENTS[1:]):
        made.client.delete(f"{PATHS[document['kind']]}/{document['metadata']['name']}")


@pytest.fixture
def rights(member: RealMember) -> Iterator[MemberClient]:
    with connected(member) as client:
        yield client


def token(member: RealMember) -> str:
    path = SERVICE_ACCOUNTS.path(HOME, NAME, "token")
    return str(member.client.create(path, {"spec": {"expirationSeconds": 3600}})["status"]["token"])


@contextmanager
def connected(member: RealMember) -> Iterator[MemberClient]:
    client = MemberClient(Access(member.plane.url, ca_pem=member.plane.ca_pem, token=token(member)))
    yield client
    client.close()


@contextmanager
def supervising(member: RealMember, home: Path) -> Iterator[Path]:
    """The process, whose log is returned, with the token of its service account alone."""
    document = member.plane.kubeconfig()
    document["users"][0]["user"] = {"token": token(member)}
    (home / "kubeconfig").write_text(json.dumps(document))
    command = [sys.executable, "-m", "supervisor.main", "--kubeconfig", str(home / "kubeconfig")]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    log = home / "supervisor.log"
    with log.open("wb") as out:
        process = subprocess.Popen([*command, "--notice", "aws-spot=4"], stdout=out, stderr=out, env=environment)
    try:
        until(lambda: member.client.list(LEASES.path(HOME))["items"], PATIENCE_S)
        yield log
    finally:
        process.terminate()
        process.wait(60)


def elastic(least: int) -> Object:
    template = casting.template(3, {"duration": "100h"})  # a node has room for one
    template["metadata"]["annotations"][MANAGED] = "true"
    worker = {"replicas": 2, "restartPolicy": "OnFailure", "template": template}
    spec = {"elasticPolicy": {"minReplicas": least, "maxReplicas": 2}, "pytorchReplicaSpecs": {"Worker": worker}}
    meta = {"name": "bert", "namespace": "default"}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": meta, "spec": spec}


def reclaimed(member: RealMember, least: int) -> Object:
    """A job of two workers, one of which is on a node that is being taken back; that worker."""
    client = member.client
    casting.submit(client, elastic(least))
    until(lambda: list(casting.phases(client).values()) == ["Running"] * 2, PATIENCE_S)
    pod: Object = client.get(PODS.path("default", "bert-worker-1"))
    client.merge_patch(NODES.path(name=pod["spec"]["nodeName"]), {"spec": {"taints": [TAINT]}})
    return pod


def records(member: RealMember) -> list[notice.JobRecord]:
    meta = member.client.get(PYTORCH_JOBS.path("default", "bert"))["metadata"]
    return list(notice.read_records((meta.get("annotations") or {}).get(notice.NOTICES), meta["uid"]).values())


def has_uid(member: RealMember, pod: Object) -> bool:
    try:
        now = member.client.get(PODS.path("default", pod["metadata"]["name"]))
    except MemberMissing:
        return False
    return bool(now["metadata"]["uid"] == pod["metadata"]["uid"])


def test_it_gives_notice_and_deletes_a_deaf_pod_at_its_deadline(member: RealMember, tmp_path: Path) -> None:
    with supervising(member, tmp_path) as log:
        pod = reclaimed(member, least=1)
        until(lambda: records(member), PATIENCE_S)
        (record,) = records(member)
        assert (record.notice.cause, record.notice.scope) == ("aws-spot", notice.Scope.PODS)
        until(lambda: records(member)[0].pods["bert-worker-1"].left, PATIENCE_S)
        entry = records(member)[0].pods["bert-worker-1"]
        assert entry.heard is None and entry.left is not None and entry.left >= record.notice.deadline
        assert not has_uid(member, pod) and "Suspended" not in casting.truths(member.client, "bert")
    assert "refused" not in log.read_text() and "forbidden" not in log.read_text(), log.read_text()


def test_it_suspends_a_job_below_its_min(member: RealMember, tmp_path: Path) -> None:
    with supervising(member, tmp_path) as log:
        reclaimed(member, least=2)
        until(lambda: (found := records(member)) and found[0].stopped, PATIENCE_S)
        (record,) = records(member)
        assert record.notice.scope is notice.Scope.JOB and sorted(record.pods) == ["bert-worker-0", "bert-worker-1"]
        job = member.client.get(PYTORCH_JOBS.path("default", "bert"))
        assert job["spec"]["runPolicy"]["suspend"] is True
        assert record.stopped is not None and record.stopped >= record.notice.deadline
        until(lambda: not casting.phases(member.client), PATIENCE_S)
    assert "refused" not in log.read_text() and "forbidden" not in log.read_text(), log.read_text()


@pytest.mark.parametrize(
    ("verb", "group", "resource", "namespace"),
    [
        ("get", "", "secrets", "default"),
        ("list", "", "configmaps", "default"),
        ("create", "", "pods", "default"),
        ("create", "", "pods/exec", "default"),
        ("create", "", "pods/eviction", "default"),
        ("patch", "", "nodes", ""),
        ("delete", "kubeflow.org", "pytorchjobs", "default"),
        ("create", "kubeflow.org", "pytorchjobs", "default"),
        ("update", "coordination.k8s.io", "leases", "kube-system"),
        ("create", "", "serviceaccounts/token", HOME),
        ("impersonate", "", "users", ""),
        ("patch", "rbac.authorization.k8s.io", "clusterroles", ""),
    ],
)
def test_it_may_not(rights: MemberClient, verb: str, group: str, resource: str, namespace: str) -> None:
    plain, _, subresource = resource.partition("/")
    about = {"verb": verb, "group": group, "resource": plain, "subresource": subresource, "namespace": namespace}
    answer = rights.create(REVIEWS, {"spec": {"resourceAttributes": about}})
    assert answer["status"]["allowed"] is False


def test_a_verb_that_is_not_granted_is_refused_and_not_only_reviewed(rights: MemberClient) -> None:
    with pytest.raises(MemberError) as refused:
        rights.list("/api/v1/namespaces/default/secrets")
    assert refused.value.status == 403
