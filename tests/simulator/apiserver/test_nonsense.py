"""Bodies no client should send: each is refused with a Status, nothing is stored, and the server goes on."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.kube.resources import CONFIG_MAPS, CRDS, JOBS, PODS, SERVICES
from fleet.member.client import MemberClient
from simulator.apiserver.server import ApiServer
from tests.contract.target import Target, definition, pod

MAPS, A_POD = CONFIG_MAPS.path("default"), PODS.path("default", "a")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    made = ApiServer("north", tmp_path_factory.mktemp("north"))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def target(server: ApiServer) -> Iterator[Target]:
    member = MemberClient(server.access())
    member.create(PODS.path("default"), pod("a"))
    yield Target("simulator", member, None, server.access(), server.forget)
    member.close()


def refused(target: Target, method: str, path: str, body: object, content_type: str = "application/json") -> int:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    code, answer = target.raw(method, path, raw, Content_Type=content_type)
    assert answer["kind"] == "Status", answer
    assert (code, answer["status"]) == (answer["code"], "Failure")
    assert 400 <= code < 500, answer
    return code


@pytest.mark.parametrize(
    ("init", "field"),
    [
        ([{"image": "i"}], "spec.initContainers[0].name"),
        ([{"name": "one"}, {"name": "../a-uid/check"}], "spec.initContainers[1].name"),
        ([{"name": "m"}], "spec.initContainers[0].name"),
        ([{"name": "one"}, {"name": "one"}], "spec.initContainers[1].name"),
    ],
    ids=repr,
)
def test_it_names_the_init_container_that_it_refuses(target: Target, init: object, field: str) -> None:
    """A container's name is part of the path of its log, and says whose log is asked for."""
    spec = {"containers": [{"name": "m"}], "initContainers": init}
    body = json.dumps({"metadata": {"name": "q"}, "spec": spec}).encode()
    code, answer = target.raw("POST", PODS.path("default"), body)
    assert (code, [each["field"] for each in answer["details"]["causes"]]) == (422, [field]), answer


@pytest.mark.parametrize(
    "metadata",
    [
        [],
        {"name": []},
        {"name": "q", "labels": []},
        {"name": "q", "annotations": "x"},
        {"name": "q", "finalizers": "x"},
        {"name": "q", "ownerReferences": "x"},
        {"name": "q", "ownerReferences": [{}]},
        {"name": "q", "ownerReferences": [{"uid": []}]},
        {"name": "q", "resourceVersion": 5},
        {"generateName": 1},
    ],
    ids=repr,
)
def test_it_refuses_metadata_of_the_wrong_type(target: Target, metadata: object) -> None:
    refused(target, "POST", MAPS, {"metadata": metadata})
    assert target.member.list(MAPS)["items"] == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (PODS.path("default"), {"spec": []}),
        (PODS.path("default"), {"spec": None}),
        (PODS.path("default"), {"spec": {"containers": [{"name": "m"}], "initContainers": ["x"]}}),
        (PODS.path("default"), {"spec": {"containers": [{"name": "m"}], "initContainers": [{"name": 5}]}}),
        (PODS.path("default"), {"spec": {"containers": [{"name": "m", "resources": {"limits": {"cpu": "1e400"}}}]}}),
        (JOBS.path("default"), {"spec": {"template": "x"}}),
        (SERVICES.path("default"), {"spec": {"ports": [1]}}),
        (f"{A_POD}/binding", {"target": "x"}),
        (f"{A_POD}/binding", {"target": {"name": 5}}),
    ],
    ids=repr,
)
def test_it_refuses_a_spec_of_the_wrong_type(target: Target, path: str, body: dict) -> None:
    refused(target, "POST", path, {"metadata": {"name": "b"}, **body})


@pytest.mark.parametrize(
    "options", [{"gracePeriodSeconds": "x"}, {"preconditions": []}, {"propagationPolicy": 5}], ids=repr
)
def test_it_refuses_delete_options_of_the_wrong_type(target: Target, options: object) -> None:
    refused(target, "DELETE", A_POD, options)


@pytest.mark.parametrize("status", ["x", {"conditions": "x"}, {"conditions": [1]}], ids=repr)
def test_it_refuses_a_status_of_the_wrong_type(target: Target, status: object) -> None:
    refused(target, "PATCH", f"{A_POD}/status", {"status": status}, "application/merge-patch+json")


@pytest.mark.parametrize(
    "change",
    [{"versions": []}, {"versions": [{}]}, {"names": None}, {"versions": "v"}, {"versions": [{"name": "v1"}]}],
    ids=repr,
)
def test_it_refuses_a_definition_it_could_not_serve(target: Target, change: dict) -> None:
    resource, body = definition()
    body["spec"] |= change
    refused(target, "POST", CRDS.path(), body)
    assert target.raw("GET", "/apis/contract.test")[0] == 404


def test_it_keeps_a_definition_fit_to_be_served(target: Target) -> None:
    resource, body = definition()
    target.member.create(CRDS.path(), body)
    path = CRDS.path(name=body["metadata"]["name"])
    refused(target, "PATCH", path, {"spec": {"versions": None}}, "application/merge-patch+json")
    assert target.member.list(resource.path())["items"] == []
    target.member.delete(path)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b'{"metadata":{"name":"n"},"data":{"a":NaN}}', "application/json"),
        (b"[" * 100_000, "application/json"),
        (b"\xff\xfe", "application/json"),
        (b"metadata: {name: &n a, namespace: *n}", "application/yaml"),
        (b"{metadata: {name: n}, data: {a: .nan}}", "application/yaml"),
    ],
    ids=["NaN", "deep", "no text", "aliases", "no number"],
)
def test_it_refuses_what_is_not_json_in_any_spelling(target: Target, body: bytes, content_type: str) -> None:
    assert refused(target, "POST", MAPS, body, content_type) == 400


def test_it_takes_a_date_in_yaml_for_text(target: Target) -> None:
    body = b"metadata: {name: dated}\ndata: {day: 2020-01-01}\n"
    code, made = target.raw("POST", MAPS, body, Content_Type="application/yaml")
    assert (code, made["data"]) == (201, {"day": "2020-01-01"})
    target.member.delete(f"{MAPS}/dated")


def test_it_writes_no_log(target: Target) -> None:
    assert refused(target, "PUT", f"{A_POD}/log", {}) == 405


def test_it_starts_again_after_all_that(tmp_path: Path) -> None:
    first = ApiServer("north", tmp_path)
    first.start()
    member = MemberClient(first.access())
    target = Target("simulator", member, None, first.access(), first.forget)
    refused(target, "POST", MAPS, {"metadata": {"name": "q", "ownerReferences": [{"uid": "u"}]}})
    member.close()
    first.stop()
    again = ApiServer("north", tmp_path)
    again.start()
    again.stop()
