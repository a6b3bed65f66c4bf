"""Bodies as they arrive: what is read, what is told of them, and how a warning travels."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.kube.requests import bodies, options
from fleet.kube.requests.bodies import Body
from fleet.kube.requests.options import APPLY_PATCH, STRICT, WARN
from fleet.kube.requests.status import KubeError
from fleet.kube.resources import CONFIG_MAPS
from fleet.kube.schema import builtin
from fleet.kube.writes import strictness

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)


@given(values)
def test_it_reads_json_as_it_is(value: object) -> None:
    assert bodies.read(json.dumps(value).encode(), "application/json") == Body(value)


@pytest.mark.parametrize("kind", ["application/json", APPLY_PATCH])
def test_it_tells_what_is_written_twice(kind: str) -> None:
    raw = b'{"a": 1, "b": [{}, {"c": 1, "c": 2, "c": 3}], "a": {"d": 1, "d": 2}}'
    assert bodies.read(raw, kind) == Body({"a": {"d": 2}, "b": [{}, {"c": 3}]}, ("a", "a.d", "b[1].c"))


def test_it_reads_yaml_as_far_as_it_is_json() -> None:
    raw = b"day: 2020-01-01\nyes: on\n5: x\nlist: [1, 1.5]\n"
    assert bodies.read(raw, "application/yaml").value == {"day": "2020-01-01", "true": True, "5": "x", "list": [1, 1.5]}


def test_it_takes_nothing_for_an_empty_object() -> None:
    assert bodies.read(b"", "application/json") == Body({})


@pytest.mark.parametrize(
    "raw", [b"{", b"a: &x 1\nb: *x", b"a: .nan", b"!!python/object:os.system x", b"\xff", b"[" * 9999], ids=repr
)
def test_it_refuses_what_is_no_manifest(raw: bytes) -> None:
    with pytest.raises(KubeError) as refused:
        bodies.read(raw, "application/yaml")
    assert refused.value.code == 400


def test_it_says_everything_it_does_not_know() -> None:
    schema = builtin.schema(CONFIG_MAPS)
    assert schema is not None
    body = Body({"dta": {}, "metadata": {"nme": 1}}, ("data.k",))
    told = ['unknown field "dta"', 'unknown field "metadata.nme"', 'duplicate field "data.k"']
    assert strictness.checked(body, schema, CONFIG_MAPS, WARN) == told
    with pytest.raises(KubeError, match=", ".join(told)):
        strictness.checked(body, schema, CONFIG_MAPS, STRICT)


@given(st.lists(st.text()))
def test_it_keeps_headers_to_what_a_header_may_be(warnings: list[str]) -> None:
    for name, value in strictness.headers(warnings):
        assert name == b"warning" and value.isascii() and value.decode().isprintable()
        assert value.startswith(b'299 - "') and value.endswith(b'"')


def test_it_quotes_a_warning() -> None:
    assert strictness.headers(['a "b" \\ c\nd', 'a "b" \\ c\nd']) == [(b"warning", b'299 - "a \\"b\\" \\\\ c d"')]


def test_it_calls_a_manager_as_asked_or_as_the_program() -> None:
    read = options.read("POST", {"fieldManager": "me"}, "application/json", "tool/1.0")
    assert (read.manager, read.dry, read.validation) == ("me", False, WARN)
    assert options.read("POST", {}, "application/json", "tool/1.0 (linux)").manager == "tool"
    assert options.read("POST", {}, "application/json", "").manager == "unknown"
