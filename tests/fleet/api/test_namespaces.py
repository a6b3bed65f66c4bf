"""Policies of namespaces over REST: everybody reads them, a fleet admin changes them, and the audit shows the change."""

import pytest

from fleet.models import AuditEntry, Grant, NamespacePolicy
from fleet.services.authorization import access, namespace_policies
from tests.support.people import client_of, person

pytestmark = pytest.mark.django_db
NAMESPACES = "/api/v1/namespaces/"


def put(client, name, **body):
    return client.put(f"{NAMESPACES}{name}/", body, format="json")


def test_an_admin_sets_changes_and_removes_a_policy(as_admin, as_viewer):
    assert put(as_admin, "vision", pod_security="restricted", capabilities=["IPC_LOCK"]).status_code == 200
    assert put(as_admin, "vision", pod_security="privileged").json()["capabilities"] == []
    assert as_viewer.get(f"{NAMESPACES}vision/").json()["pod_security"] == "privileged"
    assert as_admin.delete(f"{NAMESPACES}vision/").status_code == 204
    assert as_admin.get(f"{NAMESPACES}vision/").status_code == 404
    lines = AuditEntry.objects.filter(kind="NamespacePolicy", name="vision").order_by("pk")
    assert [(line.verb, (line.after or {}).get("pod_security")) for line in lines] == [
        ("apply", "restricted"),
        ("apply", "privileged"),
        ("delete", None),
    ]
    assert lines[1].before["pod_security"] == "restricted"


@pytest.mark.parametrize(
    ("name", "body", "field"),
    [
        ("vision", {"pod_security": "none"}, "pod_security"),
        ("vision", {"capabilities": ["cap_sys_admin"]}, "capabilities"),
        ("vision", {"host_paths": ["data"]}, "host_paths"),
        ("vision", {"host_paths": ["/data/../etc"]}, "host_paths"),
        ("vision", {"service_accounts": ["A_B"]}, "service_accounts"),
        ("vision", {"capabilities": [f"C{'A' * n}" for n in range(60)] + [f"B{'A' * n}" for n in range(60)]}, "capabilities"),
        ("VISION", {}, "name"),
        ("kube-system", {"pod_security": "privileged"}, "name"),
    ],
)  # fmt: skip
def test_it_refuses_what_makes_no_sense(as_admin, name, body, field):
    answer = put(as_admin, name, **body)
    assert answer.status_code == 422 and field in str(answer.json()["errors"]), answer.json()
    assert not NamespacePolicy.objects.exists()


def test_an_editor_cannot_widen_what_its_namespace_may(as_editor):
    assert put(as_editor, "vision", pod_security="privileged").status_code == 403
    assert client_of(person("eve", (Grant.Role.EDITOR, ""))).delete(f"{NAMESPACES}vision/").status_code == 403


def test_the_namespaces_of_clusters_are_closed_to_editors(as_admin):
    eve, ada = person("eve", (Grant.Role.EDITOR, "")), person("root", (Grant.Role.FLEET_ADMIN, ""))
    for closed in ("kube-system", "kube-public", "convoy-system", "arena-system"):
        assert not access.may(eve, "apply", "Secret", closed) and access.may(ada, "apply", "Secret", closed)
        assert access.may(eve, access.READ, "pods", closed)
        body = {"user": "eve", "role": "editor", "namespace": closed}
        assert as_admin.post("/api/v1/grants/", body, format="json").status_code == 422
    assert access.may(eve, "apply", "Secret", "kubernetes")
    assert "it takes the role fleet-admin" in access.refusal(eve, "apply", "Secret", "kube-system").message


def test_the_labels_say_what_the_member_can_enforce():
    rdma = namespace_policies._profile(NamespacePolicy(pod_security="baseline", capabilities=["IPC_LOCK"]))
    labels = namespace_policies.labels(rdma)
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"
    assert labels["pod-security.kubernetes.io/warn"] == "baseline"
