"""Server-side apply: what always holds, whoever applies what."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.kube.requests.status import KubeError
from fleet.kube.schema.schemas import of_kind
from fleet.kube.writes import managed
from fleet.kube.writes.managed import APPLY, UPDATE, Manager

NOW = datetime(2026, 5, 1, tzinfo=UTC)
LATER = datetime(2026, 5, 2, tzinfo=UTC)
TEXT = {"type": "string"}
ENTRY = {"type": "object", "properties": {"name": TEXT, "n": {"type": "integer"}}}
SPEC = {
    "type": "object",
    "properties": {
        "list": {
            "type": "array",
            "items": ENTRY,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        "map": {"type": "object", "additionalProperties": TEXT},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "one": TEXT,
    },
}
SCHEMA = of_kind({"type": "object", "properties": {"spec": SPEC}})
EMPTY: dict[str, Any] = {"metadata": {}}
ONE, TWO = (Manager(name, APPLY, "x/v1") for name in ("one", "two"))
EDITOR = Manager("editor", UPDATE, "x/v1")

names = st.sampled_from("abcd")
texts = st.sampled_from(["1", "2", "3"])
entries = st.dictionaries(names, st.integers(1, 3), max_size=3).map(
    lambda found: [{"name": name, "n": n} for name, n in found.items()]
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "list": entries,
        "set": st.lists(texts, unique=True, max_size=3),
        "map": st.dictionaries(names, texts, max_size=3),
        "any": st.dictionaries(names, st.dictionaries(names, texts, max_size=2), max_size=2),
        "one": texts,
    },
)


def of(spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "a", **metadata}, "spec": spec}


def apply(live: dict[str, Any], spec: dict[str, Any], by: Manager, *, force: bool = True, now: datetime = NOW) -> Any:
    return managed.applied(SCHEMA, live, of(spec), by, now, force=force)


def stored(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "metadata": {**found["metadata"], "uid": "u"}}


def owned(found: dict[str, Any], by: Manager) -> frozenset[Any]:
    claim = managed.parse_managed_fields(found["metadata"]).get(by.identity)
    return claim.fields if claim else frozenset()


@given(specs, specs)
def test_it_changes_nothing_when_applied_twice(first: dict, second: dict) -> None:
    live = stored(apply(stored(apply(EMPTY, first, ONE)), second, TWO))
    assert apply(live, second, TWO, force=False, now=LATER) == live


@given(specs, specs)
def test_it_takes_ownership_by_force(first: dict, second: dict) -> None:
    live = apply(stored(apply(EMPTY, first, ONE)), second, TWO)
    alone = apply(EMPTY, second, TWO)
    assert owned(live, TWO) == owned(alone, TWO)


@given(specs)
def test_it_never_conflicts_over_the_same_values(spec: dict) -> None:
    live = stored(apply(EMPTY, spec, ONE))
    both = apply(live, spec, TWO, force=False)
    assert both["spec"] == live["spec"] and owned(both, ONE) == owned(both, TWO) == owned(live, ONE)


@given(specs, specs)
def test_it_never_conflicts_over_different_fields(first: dict, second: dict) -> None:
    apart = {field: value for field, value in second.items() if field not in first}
    live = apply(stored(apply(EMPTY, first, ONE)), apart, TWO, force=False)
    assert live["spec"] == {**first, **apart}


@given(specs, specs)
def test_it_leaves_what_was_there_when_all_is_withdrawn(first: dict, second: dict) -> None:
    apart = {field: value for field, value in second.items() if field not in first}
    live = stored(apply(stored(apply(EMPTY, first, ONE)), apart, TWO))
    left = apply(live, {}, TWO)
    assert {key: value for key, value in left.get("spec", {}).items() if value} == {k: v for k, v in first.items() if v}


@given(specs, specs)
def test_it_gives_every_change_to_the_one_who_updates(first: dict, second: dict) -> None:
    live = stored(apply(EMPTY, first, ONE))
    new = managed.updated(SCHEMA, live, {**live, "spec": second}, EDITOR, LATER)
    assert new["spec"] == second
    assert not owned(new, ONE) & owned(new, EDITOR)
    assert managed.updated(SCHEMA, new, new, EDITOR, LATER) == new


@given(specs, specs)
def test_it_reads_what_it_has_written(first: dict, second: dict) -> None:
    live = apply(stored(apply(EMPTY, first, ONE)), second, TWO)
    entries = live["metadata"].get("managedFields", [])
    assert managed.written(managed.parse_managed_fields(live["metadata"]).values()) == entries


@given(specs, st.dictionaries(names, texts, min_size=1, max_size=2))
def test_it_says_whose_a_field_is_in_a_conflict(spec: dict, mine: dict[str, str]) -> None:
    live = stored(apply(EMPTY, {**spec, "map": mine}, ONE))
    with pytest.raises(KubeError) as refused:
        apply(live, {"map": dict.fromkeys(mine, "other")}, TWO, force=False)
    causes = refused.value.details["causes"]
    assert {each["field"] for each in causes} == {f".spec.map.{key}" for key in mine}
    assert refused.value.code == 409 and {each["message"] for each in causes} == {'conflict with "one"'}


def test_it_keeps_book_for_those_before_the_first_apply() -> None:
    live = stored(of({"one": "1"}))
    made = apply(live, {"map": {"a": "1"}}, ONE)
    earlier = Manager(managed.BEFORE, UPDATE, "x/v1")
    assert owned(made, earlier) == {("f:spec", "f:one")}


def test_it_forgets_everybody_when_told() -> None:
    live = stored(apply(EMPTY, {"one": "1"}, ONE))
    new = {**live, "metadata": {**live["metadata"], "managedFields": [{}]}}
    assert "managedFields" not in managed.updated(SCHEMA, live, new, EDITOR, NOW)["metadata"]


def test_it_refuses_managed_fields_that_are_applied() -> None:
    with pytest.raises(KubeError, match="managedFields must be nil"):
        managed.applied(SCHEMA, EMPTY, of({}, managedFields=[{}]), ONE, NOW, force=True)


def test_it_lets_kubectl_go_on_with_what_it_applied_itself() -> None:
    noted = {managed.LAST_APPLIED: '{"spec":{"one":"1"}}'}
    before = managed.updated(SCHEMA, EMPTY, of({"one": "1"}, annotations=noted), EDITOR, NOW)
    kubectl = Manager("kubectl", APPLY, "x/v1")
    assert apply(stored(before), {"one": "2"}, kubectl, force=False)["spec"] == {"one": "2"}
    with pytest.raises(KubeError):
        apply(stored(before), {"one": "2"}, TWO, force=False)


def test_it_keeps_a_time_for_each_manager() -> None:
    live = stored(apply(EMPTY, {"one": "1"}, ONE))
    both = apply(live, {"map": {"a": "1"}}, TWO, now=LATER)
    times = {each["manager"]: each["time"] for each in both["metadata"]["managedFields"]}
    assert times == {"one": "2026-05-01T00:00:00Z", "two": "2026-05-02T00:00:00Z"}
