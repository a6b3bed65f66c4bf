"""Small changes of a manifest: they touch nothing else, undo each other, and whatever is sent, nothing breaks."""

from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.errors import InvalidInput, NotFound
from quotas.core.trees import parsing
from quotas.services import edits
from tests.quotas.core.builders import manifest, quota
from tests.support.examples import examples

START = manifest(quota("root", 9, 9, quota("a", 4, 9, quota("x", 1, 4)), quota("b", 2, 9)))
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "min", "children", "x"]), inner)
    ),
    max_leaves=12,
)
PATHS = st.sampled_from(["root", "root/a", "root/a/x", "root/b", "root/c"]) | ANYTHING
CHANGES = st.fixed_dictionaries(
    {"op": st.sampled_from([*edits.OPERATIONS, "fly"])},
    optional={
        "path": PATHS, "parent": PATHS, "name": ANYTHING, "node": ANYTHING,
        "set": st.dictionaries(st.sampled_from(["min", "max", "attributes", "namespaces", "x"]), ANYTHING) | ANYTHING,
    },
)  # fmt: skip


def test_it_leaves_what_it_was_given_as_it_was():
    before = deepcopy(START)
    edits.changed(START, [{"op": "edit", "path": "root/a", "set": {"min": {"cpu": 5}}}])
    assert before == START


def test_it_takes_a_key_away_by_null_and_an_empty_field_with_it():
    after = edits.changed(START, [{"op": "edit", "path": "root/b", "set": {"min": {"cpu": None}}}])
    assert after["spec"]["root"]["children"][1] == {"name": "b", "max": {"cpu": 9}}


def test_it_comes_back_to_the_start_by_the_opposite_changes():
    there = [{"op": "move", "path": "root/a/x", "parent": "root/b"}, {"op": "rename", "path": "root/b", "name": "c"}]
    back = [{"op": "rename", "path": "root/c", "name": "b"}, {"op": "move", "path": "root/b/x", "parent": "root/a"}]
    assert edits.changed(START, [*there, *back]) == START


def test_it_says_which_of_many_changes_is_wrong():
    with pytest.raises(InvalidInput, match=r"changes\[1\].set.mni"):
        edits.changed(START, [{"op": "remove", "path": "root/b"}, {"op": "edit", "path": "root/a", "set": {"mni": {}}}])


@settings(max_examples=examples(300), deadline=None)
@given(changes=st.lists(CHANGES, max_size=4))
def test_it_answers_whatever_is_asked_of_it(changes):
    try:
        after = edits.changed(START, changes)
    except (InvalidInput, NotFound):
        return
    for fault in parsing.parse_tree(after).faults:
        edits.place_of(after, fault.field)


@settings(max_examples=examples(300), deadline=None)
@given(spec=ANYTHING, root=ANYTHING)
def test_it_finds_the_node_of_any_fault_of_any_document(spec, root):
    for each in ({**START, "spec": spec}, {**START, "spec": {"root": root}}):
        for fault in parsing.parse_tree(each).faults:
            edits.place_of(each, fault.field)
        list(edits.walk(each))
