"""Selectors: their text, their objects, and that both mean the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.kube.requests.selectors import (
    Requirement,
    Selector,
    SelectorError,
    matches,
    matches_label_selector,
    of_manifest,
    parse_fields,
    parse_labels,
)

WORDS = st.sampled_from(["a", "b", "app.kubernetes.io/name", "in", "x-1"])
LABELS = st.dictionaries(WORDS, WORDS)


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]))
    values = draw(st.lists(WORDS, min_size=1, max_size=3)) if operator in ("In", "NotIn") else []
    return Requirement(draw(WORDS), operator, tuple(values))


def text(selector: Selector) -> str:
    words = {"In": "{0} in ({1})", "NotIn": "{0} notin ({1})", "Exists": "{0}", "DoesNotExist": "!{0}"}
    return ", ".join(words[r.operator].format(r.key, ", ".join(r.values)) for r in selector)


def manifest(selector: Selector) -> dict:
    given = [{"key": r.key, "operator": r.operator, "values": list(r.values)} for r in selector]
    return {"matchExpressions": given}


@given(st.lists(requirements(), max_size=3).map(tuple), LABELS)
def test_it_reads_text_and_objects_alike(selector: Selector, labels: dict[str, str]) -> None:
    assert parse_labels(text(selector)) == of_manifest(manifest(selector)) == selector
    assert matches(parse_labels(text(selector)), labels) == matches_label_selector(manifest(selector), labels)


@given(LABELS, LABELS)
def test_it_matches_labels_as_subsets(wanted: dict[str, str], labels: dict[str, str]) -> None:
    assert matches_label_selector({"matchLabels": wanted}, labels) == (wanted.items() <= labels.items())


@given(requirements(), LABELS)
def test_it_knows_the_opposite(requirement: Requirement, labels: dict[str, str]) -> None:
    opposite = {"In": "NotIn", "NotIn": "In", "Exists": "DoesNotExist", "DoesNotExist": "Exists"}
    other = Requirement(requirement.key, opposite[requirement.operator], requirement.values)
    assert requirement.matches(labels) != other.matches(labels)


@given(st.text(max_size=30))
def test_it_reads_or_refuses_and_nothing_else(given_text: str) -> None:
    try:
        assert isinstance(parse_labels(given_text), tuple)
    except SelectorError as e:
        assert "unable to parse" in str(e)


@pytest.mark.parametrize("bad", ["a in (", "a=b c", "=b", "a,,b", "!", "a in b", "(a)", "a===b", ","])
def test_it_refuses_what_it_cannot_read(bad: str) -> None:
    with pytest.raises(SelectorError):
        parse_labels(bad)


@pytest.mark.parametrize("bad", ["metadata.name", "!metadata.name", "metadata.name in (a,b)"])
def test_it_takes_only_equality_of_fields(bad: str) -> None:
    with pytest.raises(SelectorError):
        parse_fields(bad)


@pytest.mark.parametrize(
    "expression",
    [
        {"key": "a", "operator": "Gt", "values": ["1"]},
        {"key": "a", "operator": "In"},
        {"key": "a", "operator": "Exists", "values": ["b"]},
    ],
)
def test_it_refuses_expressions_that_make_no_sense(expression: dict) -> None:
    with pytest.raises(SelectorError):
        of_manifest({"matchExpressions": [expression]})
