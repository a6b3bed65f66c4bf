"""What a server tells of itself, the kinds it learns, and how it says no."""

import pytest
from kubernetes.client import ApiextensionsV1Api, ApisApi, CoreV1Api, CustomObjectsApi, VersionApi
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ResourceNotFoundError

from fleet.kube.resources import CONFIG_MAPS, CRDS, JOBS, NAMESPACES, Resource
from fleet.member.client import Access, MemberClient
from fleet.member.errors import MemberDenied, MemberMissing, MemberRefused
from tests.contract.target import Target, config_map, definition, gone, served, until


def test_it_tells_its_version(target: Target) -> None:
    version = VersionApi(target.api).get_code()
    assert version.git_version.startswith("v1.") and version.major == "1"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez"])
def test_it_tells_that_it_is_well(target: Target, path: str) -> None:
    assert target.member.get_text(path) == "ok"


def test_it_tells_what_it_serves(target: Target) -> None:
    core = {r.name: r for r in CoreV1Api(target.api).get_api_resources().resources}
    maps = core["configmaps"]
    assert (maps.kind, maps.namespaced, maps.short_names) == ("ConfigMap", True, ["cm"])
    assert {"namespaces", "events", "secrets"} <= core.keys()
    assert {"create", "delete", "get", "list", "patch", "update", "watch"} <= set(core["configmaps"].verbs)
    groups = {group.name: group.preferred_version.version for group in ApisApi(target.api).get_api_versions().groups}
    assert groups["batch"] == "v1"


@pytest.mark.usefixtures("pods")
def test_it_tells_what_pods_can_be_asked(target: Target) -> None:
    core = {r.name: r for r in CoreV1Api(target.api).get_api_resources().resources}
    assert {"pods", "pods/status", "pods/log", "pods/binding", "nodes"} <= core.keys()


@pytest.fixture(scope="module")
def learned(target: Target, definitions: None) -> Resource:
    resource, manifest = definition()
    target.member.create(CRDS.path(), manifest)
    until(lambda: served(target, resource))
    return resource


def test_it_establishes_a_definition(target: Target, learned: Resource) -> None:
    extensions = ApiextensionsV1Api(target.api)
    found = until(lambda: extensions.read_custom_resource_definition(f"{learned.plural}.{learned.group}"))
    conditions = {condition.type: condition.status for condition in found.status.conditions}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert found.status.stored_versions == ["v1"]


def test_it_serves_a_learned_kind(target: Target, learned: Resource, namespace: str) -> None:
    where = (learned.group, learned.version, namespace, learned.plural)
    body = {"apiVersion": learned.api_version, "kind": learned.kind, "metadata": {"name": "a"}, "spec": {"cpu": 2}}
    custom = CustomObjectsApi(target.api)
    assert custom.create_namespaced_custom_object(*where, body)["spec"] == {"cpu": 2}
    listed = custom.list_namespaced_custom_object(*where)
    assert (listed["kind"], listed["apiVersion"]) == (f"{learned.kind}List", learned.api_version)
    assert custom.patch_namespaced_custom_object(*where, "a", {"spec": {"cpu": 3}})["spec"] == {"cpu": 3}
    custom.delete_namespaced_custom_object(*where, "a")
    assert gone(target, learned.path(namespace, "a"))


def test_it_serves_the_dynamic_client(target: Target, learned: Resource, namespace: str) -> None:
    dynamic = DynamicClient(target.api)
    resource = until(lambda: find(dynamic, learned))
    body = {"apiVersion": learned.api_version, "kind": learned.kind, "metadata": {"name": "a", "labels": {"a": "b"}}}
    assert resource.create(body=body, namespace=namespace).metadata.uid
    assert [each.metadata.name for each in resource.get(namespace=namespace, label_selector="a=b").items] == ["a"]
    pods = dynamic.resources.get(api_version="v1", kind="Pod")
    assert pods.get(namespace=namespace).items == []


def find(dynamic: DynamicClient, learned: Resource) -> object:
    try:
        return dynamic.resources.get(api_version=learned.api_version, kind=learned.kind)
    except ResourceNotFoundError:
        dynamic.resources.invalidate_cache()
    return None


@pytest.mark.usefixtures("definitions")
def test_it_forgets_a_kind_with_its_definition(target: Target, namespace: str) -> None:
    resource, manifest = definition()
    target.member.create(CRDS.path(), manifest)
    until(lambda: served(target, resource))
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "a"}}
    target.member.create(resource.path(namespace), body)
    target.member.delete(CRDS.path(name=manifest["metadata"]["name"]))
    until(lambda: not served(target, resource))


@pytest.mark.usefixtures("definitions")
def test_it_refuses_a_definition_under_another_name(target: Target) -> None:
    _, manifest = definition()
    manifest["metadata"]["name"] = "others.contract.test"
    with pytest.raises(MemberRefused) as refusal:
        target.member.create(CRDS.path(), manifest)
    assert (refusal.value.status, refusal.value.reason) == (422, "Invalid")


@pytest.mark.parametrize(
    ("resource", "details"),
    [
        (CONFIG_MAPS, {"name": "no", "kind": "configmaps"}),
        (NAMESPACES, {"name": "no", "kind": "namespaces"}),
        (JOBS, {"name": "no", "kind": "jobs", "group": "batch"}),
    ],
)
def test_it_says_what_it_did_not_find(target: Target, resource: Resource, details: dict) -> None:
    code, status = target.raw("GET", resource.path("default", "no"))
    qualified = "jobs.batch" if resource is JOBS else resource.plural
    assert (code, status["code"], status["status"], status["reason"]) == (404, 404, "Failure", "NotFound")
    assert (status["kind"], status["apiVersion"], status["details"]) == ("Status", "v1", details)
    assert status["message"] == f'{qualified} "no" not found'


def test_it_says_which_field_is_wrong(target: Target, namespace: str) -> None:
    code, status = target.raw("POST", CONFIG_MAPS.path(namespace), b'{"metadata": {"name": "A"}}')
    assert (code, status["reason"], status["details"]["kind"]) == (422, "Invalid", "ConfigMap")
    assert [(c["reason"], c["field"]) for c in status["details"]["causes"]] == [("FieldValueInvalid", "metadata.name")]
    assert status["message"].startswith('ConfigMap "A" is invalid: metadata.name: Invalid value: "A"')


@pytest.mark.parametrize("path", ["/apis/none.test/v1/things", "/api/v1/things", "/api/v1/namespaces/default/things/x"])
def test_it_knows_no_other_paths(target: Target, path: str) -> None:
    with pytest.raises(MemberMissing):
        target.member.get(path)


@pytest.mark.parametrize("body", [b"{", b"[1]", b'"text"', b"\xff\xfe", b"null"])
def test_it_refuses_what_is_no_manifest(target: Target, namespace: str, body: bytes) -> None:
    code, status = target.raw("POST", CONFIG_MAPS.path(namespace), body)
    assert (code, status["kind"]) in ((400, "Status"), (422, "Status"))


def test_it_takes_yaml(target: Target, namespace: str) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n"
    code, made = target.raw("POST", CONFIG_MAPS.path(namespace), body, Content_Type="application/yaml")
    assert (code, made["data"]) == (201, {"k": "v"})


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_it_refuses_a_body_beyond_reason(target: Target, namespace: str, method: str) -> None:
    body = b'{"metadata": {"name": "a"}, "data": {"k": "' + b"x" * (3 * 1024 * 1024) + b'"}}'
    name = "a" if method == "PUT" else ""
    code, status = target.raw(method, CONFIG_MAPS.path(namespace, name), body)
    assert (code, status["reason"]) == (413, "RequestEntityTooLarge")


def test_it_refuses_a_patch_in_words_it_does_not_know(target: Target, namespace: str) -> None:
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a"))
    code, status = target.raw("PATCH", CONFIG_MAPS.path(namespace, "a"), b"{}", Content_Type="text/plain")
    assert (code, status["reason"]) == (415, "UnsupportedMediaType")


def test_it_takes_a_list_of_operations(target: Target, namespace: str) -> None:
    target.member.create(CONFIG_MAPS.path(namespace), config_map("a", {"k": "v"}))
    body = b'[{"op": "replace", "path": "/data/k", "value": "w"}, {"op": "add", "path": "/data/j", "value": "x"}]'
    kind = "application/json-patch+json"
    code, patched = target.raw("PATCH", CONFIG_MAPS.path(namespace, "a"), body, Content_Type=kind)
    assert (code, patched["data"]) == (200, {"k": "w", "j": "x"})
    code, _ = target.raw(
        "PATCH", CONFIG_MAPS.path(namespace, "a"), b'[{"op": "remove", "path": "/x"}]', Content_Type=kind
    )
    assert code == 422


def test_it_allows_only_what_a_path_can_do(target: Target, namespace: str) -> None:
    code, status = target.raw("PUT", CONFIG_MAPS.path(namespace), b"{}")
    assert (code, status["reason"]) == (405, "MethodNotAllowed")


def test_it_refuses_a_token_it_never_gave(target: Target) -> None:
    stranger = MemberClient(Access(target.access.server, ca_pem=target.access.ca_pem, token="never-given"))
    with pytest.raises(MemberDenied) as refusal:
        stranger.list(CONFIG_MAPS.path())
    assert (refusal.value.status, refusal.value.reason) == (401, "Unauthorized")
    stranger.close()


@pytest.mark.parametrize("path", ["/version", "/healthz"])
def test_refused_credentials_do_not_make_a_caller_anonymous(target: Target, path: str) -> None:
    code, status = target.raw("GET", path, Authorization="Bearer never-given")
    assert (code, status["reason"]) == (401, "Unauthorized")


def test_it_tells_everything_it_serves_at_once(target: Target) -> None:
    if target.name == "real":
        pytest.skip("discovery all at once came with Kubernetes 1.26")
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    code, core = target.raw("GET", "/api", Accept=f"{accept},application/json")
    groups = target.raw("GET", "/apis", Accept=f"{accept},application/json")[1]
    assert (code, core["kind"], groups["kind"]) == (200, "APIGroupDiscoveryList", "APIGroupDiscoveryList")
    kinds = {each["resource"]: each for each in core["items"][0]["versions"][0]["resources"]}
    assert kinds["configmaps"]["responseKind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert kinds["configmaps"]["scope"] == "Namespaced" and "watch" in kinds["configmaps"]["verbs"]
    assert "" not in {each["metadata"].get("name", "") for each in groups["items"]}
