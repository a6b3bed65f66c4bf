"""Objects of a kind somebody defined: pruned, defaulted and judged by its schema, and scaled where it says how."""

import json
from typing import Any

import pytest

from fleet.kube.resources import CRDS, Resource
from fleet.member.errors import MemberMissing, MemberRefused
from tests.contract.target import Target, definition, served, until

TEXT, COUNT = {"type": "string"}, {"type": "integer"}
ENTRY = {"type": "object", "required": ["name"], "properties": {"name": TEXT, "n": {**COUNT, "default": 7}}}
KEYED = {"type": "array", "items": ENTRY, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
TEMPLATE = {"type": "object", "properties": {"a": TEXT}}
SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["need"],
    "properties": {
        "need": TEXT,
        "n": {**COUNT, "minimum": 1, "maximum": 5, "default": 2},
        "mode": {**TEXT, "enum": ["A", "B"]},
        "word": {**TEXT, "pattern": "^[a-z]+$", "maxLength": 3},
        "replicas": {**COUNT, "maximum": 5},
        "port": {"x-kubernetes-int-or-string": True},
        "perhaps": {**TEXT, "nullable": True, "default": "x"},
        "list": {**KEYED, "maxItems": 3},
        "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        "map": {"type": "object", "additionalProperties": COUNT},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"k": TEMPLATE}},
        "whole": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": TEMPLATE}},
    },
}
STATUS = {"type": "object", "properties": {"replicas": COUNT, "selector": TEXT}}
PATHS = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


@pytest.fixture(scope="module")
def things(target: Target) -> Resource:
    target.members_only("which kinds it serves is a matter of its code")
    resource, manifest = definition()
    version = manifest["spec"]["versions"][0]
    version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}}
    version["subresources"] = {"status": {}, "scale": PATHS}
    target.member.create(CRDS.path(), manifest)
    until(lambda: served(target, resource))
    return resource


def thing(resource: Resource, name: str = "a", **spec: Any) -> dict[str, Any]:
    identity = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
    return {**identity, "spec": {"need": "y", **spec}}


def test_it_fills_in_defaults(target: Target, namespace: str, things: Resource) -> None:
    made = target.member.create(things.path(namespace), thing(things, list=[{"name": "a"}]))
    assert made["spec"] == {"need": "y", "n": 2, "perhaps": "x", "list": [{"name": "a", "n": 7}]}


def test_it_keeps_null_only_where_it_may_be(target: Target, namespace: str, things: Resource) -> None:
    made = target.member.create(things.path(namespace), thing(things, n=None, perhaps=None))
    assert made["spec"] == {"need": "y", "n": 2, "perhaps": None}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"bogus": 1}, {}),
        ({"list": [{"name": "a", "n": 1, "bogus": 1}]}, {"list": [{"name": "a", "n": 1}]}),
        ({"any": {"what": [1], "k": {"a": "b", "bogus": 1}}}, {"any": {"what": [1], "k": {"a": "b"}}}),
        ({"map": {"bogus": 1}}, {"map": {"bogus": 1}}),
    ],
    ids=["field", "entry", "preserved", "map"],
)
def test_it_drops_what_nobody_described(target, namespace: str, things: Resource, sent: dict, kept: dict) -> None:
    made = target.member.create(things.path(namespace), {**thing(things, **sent), "bogus": {}})
    assert made["spec"] == {"need": "y", "n": 2, "perhaps": "x", **kept} and "bogus" not in made


def test_it_knows_the_fields_of_an_embedded_object(target: Target, namespace: str, things: Resource) -> None:
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"a": "b", "bogus": 1}}
    made = target.member.create(things.path(namespace), thing(things, whole=whole))
    assert made["spec"]["whole"] == {**whole, "spec": {"a": "b"}}


@pytest.mark.parametrize(
    ("spec", "reason", "field", "message"),
    [
        ({"n": 0}, "Invalid", "n", "Invalid value: 0: spec.n in body should be greater than or equal to 1"),
        ({"n": 9}, "Invalid", "n", "Invalid value: 9: spec.n in body should be less than or equal to 5"),
        ({"n": "x"}, "Invalid", "n", 'Invalid value: "string": spec.n in body must be of type integer: "string"'),
        ({"n": 1.5}, "Invalid", "n", 'Invalid value: "number": spec.n in body must be of type integer: "number"'),
        ({"mode": "C"}, "NotSupported", "mode", 'Unsupported value: "C": supported values: "A", "B"'),
        ({"word": "A"}, "Invalid", "word", "Invalid value: \"A\": spec.word in body should match '^[a-z]+$'"),
        (
            {"word": "abcd"},
            "Invalid",
            "word",
            'Invalid value: "abcd": spec.word in body should be at most 3 chars long',
        ),
        (
            {"port": []},
            "Invalid",
            "port",
            'Invalid value: "array": spec.port in body must be of type integer,string: "array"',
        ),
        ({"set": ["a", "a"]}, "Duplicate", "set[1]", 'Duplicate value: "a"'),
        (
            {"map": {"a": "x"}},
            "Invalid",
            "map.a",
            'Invalid value: "string": spec.map.a in body must be of type integer: "string"',
        ),
        ({"whole": {"kind": "A"}}, "Required", "whole.apiVersion", "Required value: must not be empty"),
    ],
    ids=lambda each: each if isinstance(each, str) and " " not in each else "",
)
def test_it_says_which_field_is_wrong(
    target: Target, namespace: str, things: Resource, spec: dict, reason: str, field: str, message: str
) -> None:
    with pytest.raises(MemberRefused) as refused:
        target.member.create(things.path(namespace), thing(things, **spec))
    body = json.dumps(thing(things, **spec)).encode()
    code, answer = target.raw("POST", things.path(namespace), body)
    cause = {"reason": f"FieldValue{reason}", "message": message, "field": f"spec.{field}"}
    assert (code, answer["reason"], answer["details"]["causes"]) == (422, "Invalid", [cause])
    assert refused.value.message == f'{things.kind}.{things.group} "a" is invalid: spec.{field}: {message}'


def test_it_says_everything_that_is_wrong(target: Target, namespace: str, things: Resource) -> None:
    body = {**thing(things), "spec": {"n": 0, "mode": "C"}}
    code, answer = target.raw("POST", things.path(namespace), json.dumps(body).encode())
    told = {(each["field"], each["reason"]) for each in answer["details"]["causes"]}
    wrong = {("spec.need", "FieldValueRequired"), ("spec.n", "FieldValueInvalid")}
    assert code == 422 and told == wrong | {("spec.mode", "FieldValueNotSupported")}
    assert answer["message"].startswith(f'{things.kind}.{things.group} "a" is invalid: [spec.')


def test_it_lets_nothing_wrong_in_by_a_patch(target: Target, namespace: str, things: Resource) -> None:
    target.member.create(things.path(namespace), thing(things))
    with pytest.raises(MemberRefused) as refused:
        target.member.merge_patch(things.path(namespace, "a"), {"spec": {"n": 9}})
    assert refused.value.status == 422
    assert target.member.get(things.path(namespace, "a"))["spec"]["n"] == 2


def test_it_scales(target: Target, namespace: str, things: Resource) -> None:
    target.member.create(things.path(namespace), thing(things, replicas=2))
    path = things.path(namespace, "a")
    target.member.merge_patch(f"{path}/status", {"status": {"replicas": 1, "selector": "a=b"}})
    found = target.member.get(f"{path}/scale")
    assert (found["kind"], found["apiVersion"], found["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 2})
    assert found["status"] == {"replicas": 1, "selector": "a=b"}
    made = target.member.replace(f"{path}/scale", {**found, "spec": {"replicas": 3}})
    patched = target.member.merge_patch(f"{path}/scale", {"spec": {"replicas": 4}})
    assert (made["spec"], patched["spec"]) == ({"replicas": 3}, {"replicas": 4})
    left = target.member.get(path)
    assert (left["spec"]["replicas"], left["metadata"]["generation"]) == (4, 3)


@pytest.mark.parametrize(("replicas", "code"), [(-1, 422), (9, 422), ("x", 400)])
def test_it_refuses_a_scale_that_cannot_be(
    target: Target, namespace: str, things: Resource, replicas: object, code: int
) -> None:
    target.member.create(things.path(namespace), thing(things, replicas=1))
    body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": replicas}}
    assert target.raw("PUT", things.path(namespace, "a") + "/scale", json.dumps(body).encode())[0] == code


def test_it_scales_only_what_has_a_scale(target: Target, namespace: str, things: Resource) -> None:
    with pytest.raises(MemberMissing):
        target.member.get(things.path(namespace, "nobody") + "/scale")
    other, manifest = definition()
    target.member.create(CRDS.path(), manifest)
    until(lambda: served(target, other))
    target.member.create(other.path(namespace), thing(other))
    with pytest.raises(MemberMissing):
        target.member.get(other.path(namespace, "a") + "/scale")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": "x"},
        {"type": "object", "properties": {"a": {"type": "sometimes"}}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}},
        {"type": "object", "required": "a"},
        {"properties": {"a": {"type": "string"}}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
    ],
    ids=["properties", "type", "pattern", "required", "untyped", "items"],
)
def test_it_refuses_a_schema_it_could_not_read(target: Target, schema: dict) -> None:
    target.members_only("which kinds it serves is a matter of its code")
    _, manifest = definition()
    manifest["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema}
    with pytest.raises(MemberRefused) as refused:
        target.member.create(CRDS.path(), manifest)
    assert refused.value.status in (400, 422)
