"""What a proxied path asks of a caller, and which paths are not passed on at all. No member is needed."""

import string

import pytest
from django.contrib.auth import get_user_model
from hypothesis import given
from hypothesis import strategies as st

from fleet.errors import ConvoyError, Forbidden
from fleet.models import Grant
from fleet.services.members import proxying
from tests.support.people import person

PODS = "/api/v1/namespaces/vision/pods"


@pytest.mark.parametrize(
    ("path", "resource", "namespace", "name", "subresource"),
    [
        ("/api/v1/nodes", "nodes", "", "", ""),
        (PODS, "pods", "vision", "", ""),
        (PODS + "/a/log", "pods", "vision", "a", "log"),
        ("/api/v1/namespaces/vision", "namespaces", "vision", "vision", ""),
        ("/api/v1/namespaces/vision/finalize", "namespaces", "vision", "vision", "finalize"),
        ("/apis/kubeflow.org/v1/pytorchjobs", "pytorchjobs", "", "", ""),
        ("/version", "", "", "", ""),
    ],
)
def test_it_reads_a_path(path, resource, namespace, name, subresource):
    call = proxying.parse_call("GET", path)
    assert (call.resource, call.namespace, call.name, call.subresource) == (resource, namespace, name, subresource)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/vision/../speech/pods",
        "/api/v1/namespaces/vision/%2e%2e/speech/pods",
        "/api/v1/namespaces/vision%2fpods/x",
        "/api/v1/namespaces/vision/pods/%252e%252e",
        "/api/v1//pods",
        "/api/v1/pods%00",
        "/api/v1/pods%3Fwatch=1",
        "/api/v1/watch/pods",
    ],
)
def test_it_passes_no_path_on_that_can_be_read_in_two_ways(path):
    with pytest.raises(ConvoyError):
        proxying.parse_call("GET", path)


@given(st.text(string.printable, max_size=40))
def test_it_sends_only_the_path_that_was_checked(text):
    try:
        call = proxying.parse_call("GET", "/api/v1/namespaces/vision/" + text)
    except ConvoyError:
        return
    again = proxying.parse_call("GET", call.path)
    assert again == call and ".." not in call.path.split("/")


ROLES = {
    "viewer": (Grant.Role.VIEWER, "vision"),
    "editor": (Grant.Role.EDITOR, "vision"),
    "auditor": (Grant.Role.VIEWER, ""),
    "quotas": (Grant.Role.QUOTA_ADMIN, ""),
    "admin": (Grant.Role.FLEET_ADMIN, ""),
}
EVERYBODY, WRITERS, WIDE = set(ROLES), {"editor", "admin"}, {"auditor", "quotas", "admin"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("method", "path", "who"),
    [
        ("GET", "/version", EVERYBODY),
        ("GET", "/apis", EVERYBODY),
        ("GET", "/metrics", {"admin"}),
        ("GET", "/api/v1/nodes", EVERYBODY),
        ("PATCH", "/api/v1/nodes/n1", {"admin"}),
        ("GET", PODS, EVERYBODY),
        ("GET", PODS + "/a/log", EVERYBODY),
        ("DELETE", PODS + "/a", WRITERS),
        ("POST", PODS + "/a/eviction", WRITERS),
        ("POST", PODS + "/a/binding", {"admin"}),
        ("GET", PODS + "/a/status", EVERYBODY),
        ("PATCH", PODS + "/a/status", {"admin"}),
        ("PUT", "/apis/kubeflow.org/v1/namespaces/vision/pytorchjobs/a/status", {"admin"}),
        ("PATCH", "/apis/resource.k8s.io/v1/namespaces/vision/resourceclaims/a/status", {"admin"}),
        ("POST", PODS + "/a/exec", set()),
        ("GET", PODS + "/a/proxy/etc", set()),
        ("GET", "/api/v1/nodes/n1/proxy/logs", set()),
        ("GET", "/api/v1/pods", WIDE),
        ("GET", "/api/v1/namespaces/speech/pods", WIDE),
        ("DELETE", "/api/v1/namespaces/speech/pods/a", {"admin"}),
        ("GET", "/api/v1/namespaces/vision/secrets", WRITERS),
        ("GET", "/api/v1/secrets", {"admin"}),
        ("GET", "/api/v1/namespaces/vision/configmaps/settings", WRITERS),
        ("POST", "/api/v1/namespaces/vision/serviceaccounts/default/token", set()),
        ("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/vision/rolebindings", {"admin"}),
        ("DELETE", "/api/v1/namespaces/vision", {"admin"}),
        ("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {"admin"}),
        ("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles", WIDE),
    ],
)
def test_it_asks_the_fleets_roles(method, path, who):
    call = proxying.parse_call(method, path)
    assert {name for name in ROLES if _may(name, call)} == who


def _may(name, call):
    user = get_user_model().objects.filter(username=name).first() or person(name, ROLES[name])
    try:
        proxying.require(user, call)
    except Forbidden:
        return False
    return True
