"""Tables: columns of built-in kinds and of definitions, ages, and paths into objects."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.kube.tables import age, at, columns_from, columns_of, table

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
META = {"name": "a", "creationTimestamp": "2026-05-01T11:55:00Z"}


def cells(columns: object, found: dict) -> list:
    return table(columns, [{"metadata": META, **found}], {}, NOON)["rows"][0]["cells"]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (284, "4m44s"),
        (600, "10m"),
        (3 * 3600 + 300, "3h5m"),
        (2 * 86_400 + 7200, "2d2h"),
        (9 * 86_400 + 7200, "9d"),
        (3 * 365 * 86_400 + 86_400, "3y1d"),
        (9 * 365 * 86_400, "9y"),
        (10_799, "179m"),
        (10_800, "3h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (-5, "0s"),
    ],
)
def test_it_shows_ages(seconds: int, shown: str) -> None:
    assert age((NOON - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ"), NOON) == shown


@given(st.none() | st.text() | st.integers())
def test_it_shows_some_age_of_anything(moment: object) -> None:
    assert age(moment, NOON)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".status.conditions[-1:].type", "Ready"),
        (".status.conditions[0].type", "New"),
        ('.status.conditions[?(@.type=="Ready")].status', "True"),
        (".status['phase']", "Fine"),
        (".status.none.deeper", None),
        (".status.conditions[7].type", None),
        (".status.phase[0]", None),
    ],
)
def test_it_finds_what_a_path_says(path: str, expected: object) -> None:
    conditions = [{"type": "New", "status": "True"}, {"type": "Ready", "status": "True"}]
    assert at(path)({"status": {"phase": "Fine", "conditions": conditions}}) == expected


def test_it_prints_the_columns_of_a_definition() -> None:
    state = {"name": "State", "type": "string", "jsonPath": ".status.conditions[-1:].type"}
    columns = columns_from([state, {"name": "N", "type": "integer", "jsonPath": ".spec.n"}])
    assert cells(columns, {"spec": {"n": 3}}) == ["a", "", 3]
    assert cells(columns_from([]), {}) == ["a", "5m"]


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        (
            {"phase": "Running", "containerStatuses": [{"ready": True, "restartCount": 2}]},
            ["a", "1/1", "Running", 2, "5m"],
        ),
        (
            {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"reason": "Error"}}}]},
            ["a", "0/1", "Error", 0, "5m"],
        ),
        ({}, ["a", "0/1", "Unknown", 0, "5m"]),
    ],
)
def test_it_prints_pods(status: dict, shown: list) -> None:
    pod = {"spec": {"containers": [{"name": "c"}]}, "status": status}
    assert cells(columns_of("", "pods"), pod)[:5] == shown


def test_it_prints_nodes_and_jobs() -> None:
    ready = {"spec": {"unschedulable": True}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert cells(columns_of("", "nodes"), ready)[1] == "Ready,SchedulingDisabled"
    assert cells(columns_of("", "nodes"), {"spec": {}})[1] == "Unknown"
    assert cells(columns_of("batch", "jobs"), {"spec": {"completions": 3}, "status": {"succeeded": 1}})[1] == "1/3"
