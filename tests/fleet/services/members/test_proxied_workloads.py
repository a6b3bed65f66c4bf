"""Writes to a member through the fleet are held to the namespace's policy, in every way that Kubernetes takes a write."""

import json
import ssl
import urllib.error
import urllib.request

import pytest
import yaml
from django.utils import timezone

from fleet.kube.resources import PODS
from fleet.models import AuditEntry, Grant
from fleet.services.authorization import namespace_policies
from tests.support.members import PROXY, api, through
from tests.support.people import person
from tests.support.protobuf import enveloped, field

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/api/v1/namespaces/team/pods"
JSON, JSON_PATCH = "application/json", "application/json-patch+json"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def pod(name="a", container=None, **spec):
    body = {"containers": [{"name": "c", "image": "x", **(container or {})}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}


def deployment(spec: bytes) -> bytes:
    return enveloped("apps/v1", "Deployment", field(1, field(1, b"a")) + field(2, spec))


@pytest.fixture
def edda(kubectl):
    """An editor of team."""
    person("edda", (Grant.Role.EDITOR, "team"))
    return through(kubectl.as_user("edda"))


def send(who, method, path, body, kind=JSON):
    document = yaml.safe_load(who.file.read_text())
    server = document["clusters"][0]["cluster"]["server"].split("/apis/")[0]
    headers = {"Authorization": f"Bearer {document['users'][0]['user']['token']}", "Content-Type": kind}
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    url = server + PROXY.format("north") + path
    request = urllib.request.Request(url, raw, headers, method=method)  # noqa: S310
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(request, context=context, timeout=60) as answer:  # noqa: S310
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


PRIVILEGED = {"securityContext": {"privileged": True}}
REFUSED = {
    "a pod": ("POST", PATH, pod(container=PRIVILEGED), JSON, "spec.containers[0].securityContext.privileged"),
    "yaml": ("POST", PATH, yaml.safe_dump(pod(hostPID=True)).encode(), "application/yaml", "spec.hostPID"),
    "a node": ("POST", PATH, pod(nodeName="n1"), JSON, "spec.nodeName"),
    "a template": (
        "POST",
        "/apis/apps/v1/namespaces/team/deployments",
        {"kind": "Deployment", "spec": {"template": {"spec": pod(hostNetwork=True)["spec"]}}},
        JSON,
        "spec.template.spec.hostNetwork",
    ),
    "a kind nobody knows": (
        "POST",
        "/apis/example.com/v1/namespaces/team/things",
        {"spec": {"deep": [{"volumes": [{"hostPath": {"path": "/"}}]}]}},
        JSON,
        "spec.deep[0].volumes[0].hostPath",
    ),
    "an apply": ("PATCH", f"{PATH}/a?fieldManager=x", yaml.safe_dump(pod(hostIPC=True)).encode(), APPLY, "spec.hostIPC"),
    "a merge": ("PATCH", f"{PATH}/a", {"spec": {"hostPID": True}}, MERGE, "spec.hostPID"),
    "a strategic merge": (
        "PATCH",
        f"{PATH}/a",
        {"spec": {"containers": [{"name": "c", **PRIVILEGED}]}},
        STRATEGIC,
        "spec.containers[0].securityContext.privileged",
    ),
    "an operation": ("PATCH", f"{PATH}/a", [{"op": "add", "path": "/spec/hostPID", "value": True}], JSON_PATCH, "spec.hostPID"),
    "a copy": ("PATCH", f"{PATH}/a", [{"op": "copy", "from": "/x", "path": "/spec/hostPID"}], JSON_PATCH, "copy and move"),
    "a debug container": (
        "PATCH",
        f"{PATH}/a/ephemeralcontainers",
        {"spec": {"ephemeralContainers": [{"name": "d", "image": "x", **PRIVILEGED}]}},
        STRATEGIC,
        "spec.ephemeralContainers[0].securityContext.privileged",
    ),
    "a replacement": ("PUT", f"{PATH}/a", pod(hostPID=True), JSON, "spec.hostPID"),
    "a field twice": ("POST", PATH, b'{"spec": {"hostPID": true, "hostPID": false}}', JSON, "stands twice"),
    "protobuf": ("POST", PATH, b"k8s\x00\x0a\x00", PROTOBUF, "write a manifest"),
    "a part of it twice": (
        "POST",
        "/apis/apps/v1/namespaces/team/deployments",
        deployment(field(3, field(2, field(11, 1))) + field(3, field(2, b""))),
        PROTOBUF,
        "is duplicated",
    ),
    "a field of it that is not read": (
        "POST",
        "/apis/apps/v1/namespaces/team/deployments",
        deployment(field(3, field(2, field(11, 1)))),
        PROTOBUF,
        "write a manifest",
    ),
    "a token": (
        "POST",
        "/api/v1/namespaces/team/secrets",
        {"kind": "Secret", "metadata": {"name": "t"}, "type": "kubernetes.io/service-account-token"},
        JSON,
        "credentials, which are not handed out",
    ),
}  # fmt: skip


def test_every_way_of_writing_a_workload_is_refused_by_its_field_and_audited(edda, ada, north):
    api(north).create(PODS.path("team"), pod())
    before = api(north).list(PODS.path("team"))["items"]
    for who in (edda, ada):
        for name, (method, path, body, kind, words) in REFUSED.items():
            code, answer = send(who, method, path, body, kind)
            assert 400 <= code < 500 and words in answer["message"], (name, code, answer)
    assert api(north).list(PODS.path("team"))["items"] == before
    assert AuditEntry.objects.filter(actor="edda", outcome="refused", door="proxy").count() == len(REFUSED)


def test_what_the_policy_allows_is_passed_on(edda, north):
    assert send(edda, "POST", PATH, pod())[0] == 201
    assert send(edda, "PATCH", f"{PATH}/a", {"metadata": {"labels": {"privileged": "true"}}}, MERGE)[0] == 200
    namespace_policies.save("team", {"pod_security": "privileged"}, now=timezone.now())
    assert send(edda, "POST", PATH, pod("b", PRIVILEGED, hostNetwork=True))[0] == 201
    secret = {"kind": "Secret", "metadata": {"name": "t"}, "type": "kubernetes.io/service-account-token"}
    assert send(edda, "POST", "/api/v1/namespaces/team/secrets", secret)[0] == 403


def test_a_restricted_namespace_takes_whole_pods_and_no_patches_of_them(edda, north):
    namespace_policies.save("team", {"pod_security": "restricted"}, now=timezone.now())
    safe = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True}
    safe = {"securityContext": {**safe, "seccompProfile": {"type": "RuntimeDefault"}}}
    assert "runAsNonRoot" in send(edda, "POST", PATH, pod())[1]["message"]
    assert send(edda, "POST", PATH, pod(container=safe))[0] == 201
    path = "/spec/containers/0/securityContext/runAsNonRoot"
    for body, kind in (
        ({"spec": {"securityContext": None}}, MERGE),
        ({"spec": {"containers": [{"name": "c", "securityContext": None}]}}, STRATEGIC),
        ([{"op": "remove", "path": path}], JSON_PATCH),
    ):
        assert send(edda, "PATCH", f"{PATH}/a", body, kind)[0] == 403
    assert send(edda, "PATCH", f"{PATH}/a", {"metadata": {"labels": {"a": "b"}}}, MERGE)[0] == 200


def test_the_clusters_own_namespaces_are_closed_to_editors_of_all(kubectl, ada, north):
    person("eve", (Grant.Role.EDITOR, ""))
    eve = through(kubectl.as_user("eve"))
    for path in ("/api/v1/namespaces/kube-system/secrets", "/api/v1/secrets", "/api/v1/configmaps"):
        code, answer = send(eve, "GET", path, b"")
        assert (code, "fleet-admin" in answer["message"]) == (403, True), path
        assert send(ada, "GET", path, b"")[0] == 200
    assert send(eve, "POST", PATH.replace("team", "kube-system"), pod())[0] == 403
    assert send(ada, "POST", PATH.replace("team", "kube-system"), pod(hostNetwork=True))[0] == 201
