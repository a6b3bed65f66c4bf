"""Whatever is sent to whichever door in whichever style: an answer that is no failure of the server, and the server goes on."""

import json
from collections.abc import Iterator

import pytest
import urllib3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.kube.resources import CONFIG_MAPS, CRDS, JOBS, NODES, PODS, Resource
from fleet.member.client import MemberClient
from simulator.apiserver.server import ApiServer
from tests.contract.target import config_map, job, pod
from tests.support.examples import examples

STYLES = [
    "application/json",
    "application/yaml",
    "application/apply-patch+yaml",
    *(f"application/{style}+json" for style in ("merge-patch", "strategic-merge-patch", "json-patch")),
]
FIELDS = [
    *("apiVersion", "kind", "metadata", "spec", "status", "data", "name", "namespace", "labels", "annotations"),
    *("managedFields", "manager", "operation", "fieldsV1", "f:spec", 'k:{"name":"main"}', "k:[]", "k:{", "v:1", "."),
    *("containers", "env", "ports", "resources", "limits", "template", "conditions", "taints", "capacity", "replicas"),
    *("op", "path", "value", "from", "$patch", "$retainKeys", "$setElementOrder/containers", "ownerReferences"),
    *("versions", "schema", "openAPIV3Schema", "properties", "items", "type", "subresources", "scale", "finalizers"),
]
WORDS = ["a", "main", "v1", "Pod", "Apply", "add", "/spec/x", "object", "array", "1", "1Gi", "=", "", "é", "\x00"]

scalars = st.none() | st.booleans() | st.integers(-2, 99) | st.floats(allow_nan=False) | st.sampled_from(WORDS)
bodies = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=25,
)
KINDS: dict[Resource, dict] = {
    PODS: pod("a"),
    CONFIG_MAPS: config_map("a"),
    JOBS: job("a"),
    NODES: {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}},
    CRDS: {"apiVersion": CRDS.api_version, "kind": CRDS.kind, "metadata": {"name": "a"}},
}
QUERIES = ["fieldManager=me", "fieldManager=me&force=true", "fieldManager=me&fieldValidation=Strict", "dryRun=All", ""]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    made = ApiServer("north", tmp_path_factory.mktemp("north"))
    made.start()
    member = MemberClient(made.access())
    for resource, body in KINDS.items():
        if resource != CRDS:
            member.create(resource.path("default"), body)
    yield made
    member.close()
    made.stop()


@pytest.fixture(scope="module")
def pool(server: ApiServer) -> Iterator[urllib3.PoolManager]:
    with urllib3.PoolManager(ca_cert_data=server.access().ca_pem) as made:
        yield made


def mixed(whole: dict, part: object, where: list[str]) -> object:
    """An object of the kind with something else somewhere inside."""
    if not where:
        return part
    inside = whole.get(where[0])
    return {**whole, where[0]: mixed(inside if isinstance(inside, dict) else {}, part, where[1:])}


@settings(max_examples=examples(400), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    resource=st.sampled_from(list(KINDS)),
    method=st.sampled_from(["POST", "PUT", "PATCH", "DELETE"]),
    part=bodies,
    where=st.lists(st.sampled_from(FIELDS), max_size=3),
    style=st.sampled_from(STYLES),
    subresource=st.sampled_from(["", "status", "scale", "binding"]),
    query=st.sampled_from(QUERIES),
)
def test_it_never_fails(server, pool, resource, method, part, where, style, subresource, query) -> None:
    path = resource.path("default", *(() if method == "POST" and not subresource else ("a", subresource)))
    headers = {"Authorization": f"Bearer {server.access().token}", "Content-Type": style}
    body = json.dumps(mixed(KINDS[resource], part, where)).encode()
    separator = "&dryRun=All" if method == "DELETE" else ""
    answer = pool.request(
        method, f"{server.access().server}{path}?{query}{separator}", body=body, headers=headers, retries=False
    )
    assert answer.status < 500, (answer.status, answer.data)
    assert answer.status < 400 or json.loads(answer.data)["code"] == answer.status
