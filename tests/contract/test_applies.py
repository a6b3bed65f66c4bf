"""Server-side apply: who owns which field, what gives way and what is refused."""

import json
from typing import Any

import pytest

from fleet.kube.resources import CONFIG_MAPS, CRDS, JOBS, PODS, SERVICES, Resource
from tests.contract.target import Target, config_map, definition, job, pod, served, until

APPLY = "application/apply-patch+yaml"
LIST = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
    },
}


def applied(target: Target, path: str, body: dict[str, Any], manager: str, **query: str) -> tuple[int, dict[str, Any]]:
    asked = "&".join(f"{key}={value}" for key, value in {"fieldManager": manager, **query}.items())
    return target.raw("PATCH", f"{path}?{asked}", json.dumps(body).encode(), Content_Type=APPLY)


def owned(found: dict[str, Any], manager: str) -> dict[str, Any]:
    return next((each["fieldsV1"] for each in found["metadata"]["managedFields"] if each["manager"] == manager), {})


def map_of(name: str, **data: str) -> dict[str, Any]:
    return config_map(name, data)


def thing(resource: Resource, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "a"}, "spec": spec}


@pytest.fixture
def things(target: Target, definitions: None) -> Resource:
    """A kind with a list whose entries have names."""
    resource, manifest = definition()
    count = {"type": "integer"}
    spec = {"type": "object", "properties": {"list": LIST, "count": count}}
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object", "properties": {"n": count}}}}
    manifest["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema}
    target.member.create(CRDS.path(), manifest)
    until(lambda: served(target, resource))
    return resource


def test_it_creates_what_is_not_there(target: Target, namespace: str) -> None:
    code, made = applied(target, CONFIG_MAPS.path(namespace, "a"), map_of("a", k="1"), "one")
    entry = made["metadata"]["managedFields"][0]
    assert (code, made["data"], len(made["metadata"]["managedFields"])) == (201, {"k": "1"}, 1)
    assert (entry["operation"], entry["apiVersion"], entry["fieldsType"]) == ("Apply", "v1", "FieldsV1")
    assert entry["fieldsV1"] == {"f:data": {"f:k": {}}}


def test_it_changes_nothing_when_applied_again(target: Target, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace, "a")
    _, made = applied(target, path, map_of("a", k="1"), "one")
    code, again = applied(target, path, map_of("a", k="1"), "one")
    assert (code, again["metadata"]["resourceVersion"]) == (200, made["metadata"]["resourceVersion"])


def test_it_lets_two_own_what_they_do_not_share(target: Target, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace, "a")
    applied(target, path, map_of("a", k="1"), "one")
    code, both = applied(target, path, map_of("a", j="2"), "two")
    assert (code, both["data"]) == (200, {"k": "1", "j": "2"})
    assert (owned(both, "one"), owned(both, "two")) == ({"f:data": {"f:k": {}}}, {"f:data": {"f:j": {}}})


def test_it_takes_away_what_is_applied_no_more(target: Target, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace, "a")
    applied(target, path, map_of("a", k="1", both="3"), "one")
    applied(target, path, map_of("a", both="3"), "two")
    _, left = applied(target, path, map_of("a"), "one")
    assert left["data"] == {"both": "3"} and owned(left, "two")


def test_it_names_the_field_and_its_owner_in_a_conflict(target: Target, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace, "a")
    applied(target, path, map_of("a", k="1"), "one")
    code, refused = applied(target, path, map_of("a", k="2"), "two")
    assert (code, refused["reason"]) == (409, "Conflict")
    assert refused["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.k'
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.k"}
    assert refused["details"]["causes"] == [cause]


def test_it_names_every_field_in_a_conflict(target: Target, namespace: str) -> None:
    path = f"{CONFIG_MAPS.path(namespace)}?fieldManager=maker"
    target.raw("POST", path, json.dumps(map_of("a", k="1", j="1")).encode())
    code, refused = applied(target, CONFIG_MAPS.path(namespace, "a"), map_of("a", k="2", j="2"), "two")
    told = 'Apply failed with 2 conflicts: conflicts with "maker" using v1:\n- .data.'
    assert code == 409 and refused["message"].startswith(told)
    assert {each["field"] for each in refused["details"]["causes"]} == {".data.j", ".data.k"}


def test_it_takes_over_by_force(target: Target, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace, "a")
    applied(target, path, map_of("a", k="1", j="1"), "one")
    code, taken = applied(target, path, map_of("a", k="2"), "two", force="true")
    assert (code, taken["data"]["k"], owned(taken, "two")) == (200, "2", {"f:data": {"f:k": {}}})
    assert owned(taken, "one") == {"f:data": {"f:j": {}}}


def test_it_gives_what_an_update_changes_to_the_updater(target: Target, namespace: str) -> None:
    path = CONFIG_MAPS.path(namespace, "a")
    applied(target, path, map_of("a", k="1", j="1"), "one")
    kind = "application/merge-patch+json"
    _, patched = target.raw("PATCH", f"{path}?fieldManager=ed", b'{"data": {"k": "2"}}', Content_Type=kind)
    assert owned(patched, "one") == {"f:data": {"f:j": {}}}
    assert [each["operation"] for each in patched["metadata"]["managedFields"]] == ["Apply", "Update"]
    assert owned(patched, "ed") == {"f:data": {"f:k": {}}}


def test_it_calls_a_manager_as_the_program_that_writes(target: Target, namespace: str) -> None:
    body = json.dumps(map_of("a", k="1")).encode()
    _, made = target.raw("POST", CONFIG_MAPS.path(namespace), body, User_Agent="tool/1.2 (linux)")
    assert owned(made, "tool") == {"f:data": {".": {}, "f:k": {}}}


@pytest.mark.usefixtures("defaults")
@pytest.mark.parametrize(
    ("resource", "body", "more"),
    [(PODS, pod("a"), {"f:enableServiceLinks"}), (JOBS, job("a"), set())],
    ids=["pod", "job"],
)
def test_it_gives_a_new_object_with_its_defaults_to_the_creator(
    target: Target, namespace: str, resource: Resource, body: dict, more: set[str]
) -> None:
    _, made = target.raw("POST", f"{resource.path(namespace)}?fieldManager=me", json.dumps(body).encode())
    fields = owned(made, "me")
    spec = fields["f:spec"]["f:template"]["f:spec"] if resource == JOBS else fields["f:spec"]
    container = {".", "f:image", "f:imagePullPolicy", "f:name", "f:resources"}
    container |= {"f:terminationMessagePath", "f:terminationMessagePolicy"}
    assert set(spec["f:containers"]) == {'k:{"name":"main"}'}
    assert set(spec["f:containers"]['k:{"name":"main"}']) == container
    rest = {"f:containers", "f:dnsPolicy", "f:restartPolicy", "f:schedulerName", "f:securityContext"}
    assert set(spec) == rest | {"f:terminationGracePeriodSeconds"} | more


def test_it_applies_beside_what_another_applied(target: Target, namespace: str) -> None:
    path, less = JOBS.path(namespace, "a"), job("a")
    applied(target, path, job("a"), "one")
    code, both = applied(target, path, {**less, "spec": {**less["spec"], "parallelism": 3}}, "two")
    assert (code, both["spec"]["parallelism"]) == (200, 3)
    assert owned(both, "two")["f:spec"]["f:template"] == owned(both, "one")["f:spec"]["f:template"]


def test_it_merges_a_list_whose_entries_have_names(target: Target, namespace: str, things: Resource) -> None:
    path = things.path(namespace, "a")
    applied(target, path, thing(things, list=[{"name": "a", "n": 1}]), "one")
    code, both = applied(target, path, thing(things, list=[{"name": "b", "n": 2}]), "two")
    assert (code, both["spec"]["list"]) == (200, [{"name": "a", "n": 1}, {"name": "b", "n": 2}])
    entry = {".": {}, "f:name": {}, "f:n": {}}
    assert owned(both, "two") == {"f:spec": {"f:list": {'k:{"name":"b"}': entry}}}
    _, left = applied(target, path, thing(things, list=[]), "one")
    assert left["spec"]["list"] == [{"name": "b", "n": 2}]


def test_it_names_the_entry_in_a_conflict(target: Target, namespace: str, things: Resource) -> None:
    path = things.path(namespace, "a")
    applied(target, path, thing(things, list=[{"name": "a", "n": 1}]), "one")
    code, refused = applied(target, path, thing(things, list=[{"name": "a", "n": 2}]), "two")
    assert (code, refused["details"]["causes"][0]["field"]) == (409, '.spec.list[name="a"].n')


def test_it_refuses_an_entry_that_stands_twice(target: Target, namespace: str, things: Resource) -> None:
    twice = [{"name": "a", "n": 1}, {"name": "a", "n": 2}]
    code, refused = applied(target, things.path(namespace, "a"), thing(things, list=twice), "one")
    assert code in (400, 500) and 'duplicate entries for key [name="a"]' in refused["message"]


def test_it_applies_a_status_beside_the_rest(target: Target, namespace: str, things: Resource) -> None:
    path = things.path(namespace, "a")
    applied(target, path, thing(things, count=1), "one")
    code, told = applied(target, f"{path}/status", {**thing(things), "status": {"n": 3}}, "two")
    assert (code, told["status"], told["spec"]) == (200, {"n": 3}, {"count": 1})
    assert owned(told, "two")["f:status"] == {"f:n": {}}
    assert applied(target, things.path(namespace, "b") + "/status", thing(things), "two")[0] in (400, 404)


@pytest.mark.usefixtures("newer")
def test_it_lets_kubectl_go_over_to_the_servers_side(target: Target, namespace: str) -> None:
    last = "kubectl.kubernetes.io/last-applied-configuration"
    noted = config_map("a", {"k": "1"}, annotations={last: json.dumps(map_of("a", k="1"))})
    path = f"{CONFIG_MAPS.path(namespace)}?fieldManager=kubectl-client-side-apply"
    target.raw("POST", path, json.dumps(noted).encode())
    code, made = applied(target, CONFIG_MAPS.path(namespace, "a"), map_of("a", k="2"), "kubectl")
    assert (code, made["data"]) == (200, {"k": "2"})
    assert json.loads(made["metadata"]["annotations"][last])["data"] == {"k": "2"}
    code, refused = applied(target, CONFIG_MAPS.path(namespace, "a"), map_of("a", k="3"), "another")
    assert (code, refused["details"]["causes"][0]["message"]) == (409, 'conflict with "kubectl"')


@pytest.mark.usefixtures("defaults", "pods")
def test_it_fills_in_defaults_again_when_an_object_is_replaced(target: Target, namespace: str) -> None:
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}
    target.member.create(SERVICES.path(namespace), body)
    address = target.member.get(SERVICES.path(namespace, "a"))["spec"].get("clusterIP", "")
    version = target.member.get(SERVICES.path(namespace, "a"))["metadata"]["resourceVersion"]
    changed = {"ports": [{"port": 81}], **({"clusterIP": address} if address else {})}
    again = {**body, "metadata": {"name": "a", "resourceVersion": version}, "spec": changed}
    made = target.member.replace(SERVICES.path(namespace, "a"), again)
    assert made["spec"]["ports"] == [{"port": 81, "protocol": "TCP", "targetPort": 81}]
