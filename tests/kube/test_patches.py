"""Patches: RFC 7386 and RFC 6902 by their own examples and laws, and the strategic patch of built-in kinds."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.kube.writes.patches import PatchError, json_patch, merge, strategic

KEYS = st.sampled_from("abc")
VALUES = st.recursive(
    st.none() | st.integers(0, 3) | st.text(max_size=2), lambda v: st.dictionaries(KEYS, v) | st.lists(v, max_size=2)
)
OBJECTS = st.dictionaries(KEYS, VALUES)

RFC_7386 = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "expected"), RFC_7386)
def test_it_merges_as_the_standard_shows(target: object, patch: object, expected: object) -> None:
    assert merge(target, patch) == expected


@given(VALUES, VALUES)
def test_it_changes_nothing_it_is_given(target: object, patch: object) -> None:
    before = copy.deepcopy((target, patch))
    merge(target, patch), strategic(target, patch)
    assert (target, patch) == before


@given(OBJECTS, OBJECTS)
def test_it_changes_nothing_the_second_time(target: dict, patch: dict) -> None:
    once = merge(target, patch)
    assert merge(once, patch) == once
    assert merge(target, {}) == target


@given(OBJECTS, OBJECTS)
def test_it_agrees_with_the_plain_merge_where_no_list_has_keys(target: dict, patch: dict) -> None:
    assert strategic(target, patch) == merge(target, patch)


def test_it_merges_lists_by_key() -> None:
    pod = {"containers": [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]}
    patch = {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}, {"name": "c"}]}
    merged = strategic(pod, patch)["containers"]
    assert [container["name"] for container in merged] == ["a", "b", "c"]
    assert [e["name"] for e in merged[0]["env"]] == ["X", "Y"] and merged[0]["image"] == "1"


def test_it_follows_directives() -> None:
    pod = {"containers": [{"name": "a"}, {"name": "b"}], "finalizers": ["x", "y"], "labels": {"a": "1", "b": "2"}}
    assert strategic(pod, {"containers": [{"name": "a", "$patch": "delete"}]})["containers"] == [{"name": "b"}]
    assert strategic(pod, {"containers": [{"$patch": "replace"}, {"name": "z"}]})["containers"] == [{"name": "z"}]
    assert strategic(pod, {"$deleteFromPrimitiveList/finalizers": ["x"]})["finalizers"] == ["y"]
    assert strategic(pod, {"finalizers": ["z"], "$setElementOrder/finalizers": ["z"]})["finalizers"] == ["x", "y", "z"]
    assert strategic(pod, {"labels": {"c": "3", "$patch": "replace"}})["labels"] == {"c": "3"}


def test_it_needs_the_key_of_an_entry() -> None:
    with pytest.raises(PatchError, match="name"):
        strategic({"containers": [{"name": "a"}]}, {"containers": [{"image": "i"}]})


RFC_6902 = [
    ({"a": "b"}, {"op": "add", "path": "/c", "value": "d"}, {"a": "b", "c": "d"}),
    ({"a": [1, 3]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2, 3]}),
    ({"a": [1]}, {"op": "add", "path": "/a/-", "value": 2}, {"a": [1, 2]}),
    ({"a": 1, "b": 2}, {"op": "remove", "path": "/a"}, {"b": 2}),
    ({"a": [1, 2, 3]}, {"op": "remove", "path": "/a/1"}, {"a": [1, 3]}),
    ({"a": {"b": 1}}, {"op": "replace", "path": "/a/b", "value": 2}, {"a": {"b": 2}}),
    ({"a": {"x": 1}, "b": {}}, {"op": "move", "from": "/a/x", "path": "/b/y"}, {"a": {}, "b": {"y": 1}}),
    ({"a": 1}, {"op": "copy", "from": "/a", "path": "/b"}, {"a": 1, "b": 1}),
    ({"a/b": 1, "m~n": 2}, {"op": "replace", "path": "/a~1b", "value": 3}, {"a/b": 3, "m~n": 2}),
    ({"a": 1}, {"op": "test", "path": "/a", "value": 1}, {"a": 1}),
]


@pytest.mark.parametrize(("target", "operation", "expected"), RFC_6902)
def test_it_operates_as_the_standard_shows(target: object, operation: dict, expected: object) -> None:
    assert json_patch(target, [operation]) == expected


@pytest.mark.parametrize(
    "operations",
    [
        {},
        ["add"],
        [{"op": "add", "path": "a", "value": 1}],
        [{"op": "add", "path": "/a/b", "value": 1}],
        [{"op": "replace", "path": "/z", "value": 1}],
        [{"op": "remove", "path": "/l/7"}],
        [{"op": "test", "path": "/a", "value": 2}],
        [{"op": "add", "path": "/z"}],
        [{"op": "turn", "path": "/a"}],
    ],
)
def test_it_refuses_operations_that_do_not_fit(operations: object) -> None:
    with pytest.raises(PatchError):
        json_patch({"a": 1, "l": [1]}, operations)
