"""Schemas: what is filled in, dropped, named and judged. The exact words are held to a real server's in tests/contract."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.kube import resources
from fleet.kube.schema import builtin, structural, validation
from fleet.kube.schema.definitions import schema_faults
from fleet.kube.schema.schemas import ANY, of_kind, parse_schema

TEXT, COUNT = {"type": "string"}, {"type": "integer"}
INNER = {"type": "object", "properties": {"a": {**COUNT, "default": 1}, "b": TEXT}}
DOCUMENT = {
    "type": "object",
    "properties": {
        "in": {**INNER, "default": {"b": "x"}},
        "list": {"type": "array", "items": INNER},
        "map": {"type": "object", "additionalProperties": INNER},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"in": INNER}},
        "null": {**TEXT, "nullable": True},
    },
}
SCHEMA = parse_schema(DOCUMENT)

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2)
keys = st.sampled_from(["in", "list", "map", "any", "null", "a", "b", "bogus"])
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3))


@given(values)
def test_it_drops_exactly_what_is_not_described(value: object) -> None:
    left = structural.pruned(SCHEMA, value)
    assert structural.unknown_fields(SCHEMA, left) == []
    assert structural.pruned(SCHEMA, left) == left
    assert (left == value) == (not structural.unknown_fields(SCHEMA, value))


@given(values)
def test_it_fills_in_once(value: object) -> None:
    filled = structural.with_defaults(SCHEMA, value)
    assert structural.with_defaults(SCHEMA, filled) == filled


@given(values)
def test_it_judges_anything_without_failing(value: object) -> None:
    assert all(set(each) == {"reason", "message", "field"} for each in validation.faults(SCHEMA, value, "spec"))


@given(values)
def test_it_lets_everything_be_where_nothing_is_said(value: object) -> None:
    assert structural.pruned(ANY, value) == structural.with_defaults(ANY, value) == value
    assert structural.unknown_fields(ANY, value) == validation.faults(ANY, value) == []


@given(values)
def test_it_refuses_or_reads_whatever_a_definition_says(document: object) -> None:
    faults = list(schema_faults(document, "spec"))
    if not faults and isinstance(document, dict):
        assert parse_schema(document)


def test_it_fills_in_what_a_default_lacks() -> None:
    filled = structural.with_defaults(SCHEMA, {"list": [{}], "map": {"k": {"b": "y"}}})
    assert filled == {"list": [{"a": 1}], "map": {"k": {"b": "y", "a": 1}}, "in": {"b": "x", "a": 1}}


def test_it_gives_each_object_a_default_of_its_own() -> None:
    first, second = (structural.with_defaults(SCHEMA, {}) for _ in range(2))
    first["in"]["b"] = "changed"
    assert second["in"]["b"] == "x"


def test_it_names_the_unknown_where_it_stands() -> None:
    found = {"list": [{}, {"x": 1}], "map": {"k": {"y": 1}}, "any": {"z": 1, "in": {"w": 1}}, "bogus": 1}
    assert structural.unknown_fields(SCHEMA, found) == ["list[1].x", "map.k.y", "any.in.w", "bogus"]


def test_it_keeps_metadata_to_what_every_object_has() -> None:
    found = {"metadata": {"name": "a", "labels": {"l": "1"}, "bogus": 1}, "kind": "X", "apiVersion": "v1", "more": 1}
    assert structural.unknown_fields(of_kind({"type": "object"}), found) == ["metadata.bogus", "more"]
    assert structural.unknown_fields(of_kind(None), found) == ["metadata.bogus"]


@pytest.mark.parametrize("resource", [resources.PODS, resources.JOBS, resources.NODES, resources.SERVICES], ids=str)
def test_it_knows_the_built_in_kinds(resource: resources.Resource) -> None:
    schema = builtin.schema(resource)
    assert schema is not None and {"apiVersion", "kind", "metadata", "spec", "status"} <= set(schema.fields)
    documents = builtin.documents(resource.kind)
    assert all(each["type"] == "object" and not list(schema_faults_of(each)) for each in documents.values())


def schema_faults_of(document: dict) -> list:
    """References are no part of what a definition may say."""
    return [each for each in schema_faults(document, "") if not each["field"].endswith("type")]


def test_it_finds_a_typing_error_deep_in_a_pod() -> None:
    schema = builtin.schema(resources.PODS)
    assert schema is not None
    container = {"name": "a", "env": [{"name": "A", "valeu": "b"}], "resources": {"limits": {"nvidia.com/gpu": 1}}}
    spec = {"containers": [container], "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]}
    assert structural.unknown_fields(schema, {"spec": spec}) == ["spec.containers[0].env[0].valeu"]


def test_it_leaves_out_what_is_empty_as_built_in_types_do() -> None:
    schema = builtin.schema(resources.PODS)
    assert schema is not None
    spec = {"containers": [], "nodeSelector": {}, "securityContext": {}, "volumes": [], "hostname": None}
    found = structural.without_empty(schema, {"metadata": {"annotations": {}, "labels": {"l": ""}}, "spec": spec})
    assert found == {"metadata": {"labels": {"l": ""}}, "spec": {"containers": [], "securityContext": {}}}
