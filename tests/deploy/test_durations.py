"""Budgets of tests: a test that became slow is named on any machine, a busy machine names none."""

from types import SimpleNamespace

import pytest

from tests.support.durations import by_seconds, leave_out_slow, merged, over_budget, slowdown, summed

BUDGETS = {f"tests/test_x.py::test_{n}": 5.0 for n in range(12)}
FIRST = "tests/test_x.py::test_0"


def times(factor: float, **others: float) -> dict[str, float]:
    return {name: factor * seconds for name, seconds in BUDGETS.items()} | others


def test_it_names_a_test_that_became_slow() -> None:
    assert over_budget(times(1.0) | {FIRST: 16.0}, BUDGETS) == [f"{FIRST} took 16.0 s, its budget is 5.0 s"]


def test_it_names_a_new_test_that_is_slow() -> None:
    (sentence,) = over_budget(times(1.0, new=20.0), BUDGETS)
    assert sentence.startswith("new took 20.0 s")


@pytest.mark.parametrize("factor", [0.2, 1.0, 2.9, 10.0])
def test_a_busy_machine_names_none(factor: float) -> None:
    assert over_budget(times(factor), BUDGETS) == []


def test_it_names_the_slow_one_on_a_busy_machine_too() -> None:
    assert over_budget(times(4.0) | {FIRST: 64.0}, BUDGETS) == [f"{FIRST} took 16.0 s, its budget is 5.0 s"]


def test_a_few_tests_alone_are_not_judged() -> None:
    assert over_budget({FIRST: 100.0}, BUDGETS) == [] and slowdown({FIRST: 100.0}, BUDGETS) == 1.0


@pytest.mark.parametrize("budget", [2.0, 3.9])
def test_no_budget_is_below_four_seconds(budget: float) -> None:
    assert over_budget(times(1.0, short=11.9), BUDGETS | {"short": budget}) == []
    assert over_budget(times(1.0, short=12.1), BUDGETS | {"short": budget}) == [
        "short took 12.1 s, its budget is 4.0 s"
    ]


def test_a_quick_run_leaves_out_what_took_seconds() -> None:
    items = [SimpleNamespace(nodeid=f"tests/test_x.py::test_{name}") for name in ("new", "0", "1@folder")]
    left_out: list[SimpleNamespace] = []
    config = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items)))
    leave_out_slow(items, BUDGETS, config)  # type: ignore[arg-type]  # only the names of tests are asked for
    assert [item.nodeid for item in items] == ["tests/test_x.py::test_new"] and len(left_out) == 2


def test_it_sums_files_and_keeps_the_seconds_of_slow_tests_only() -> None:
    spent = {"tests/a.py::test_1": 1.04, "tests/a.py::test_2": 6.0}
    assert summed(spent) == {"files": {"tests/a.py": 7.0}, "tests": {"tests/a.py::test_2": 6.0}}


def test_a_file_that_was_skipped_keeps_what_was_known_of_it() -> None:
    kept = {"files": {"tests/a.py": 9.0, "tests/b.py": 8.0, "tests/gone.py": 7.0}, "tests": {"tests/b.py::slow": 6.0}}
    spent = {"tests/a.py::one": 1.0, "tests/b.py::slow": 0.0}
    new = merged(kept, spent, skipped={"tests/b.py::slow"})
    assert new == {"files": {"tests/a.py": 1.0, "tests/b.py": 8.0}, "tests": {"tests/b.py::slow": 6.0}}


def test_a_folder_that_runs_as_one_begins_as_early_as_all_its_files_ask_for() -> None:
    seconds = {"tests/contract/test_a.py": 2.0, "tests/contract/test_b.py": 3.0, "tests/flows/test_c.py": 4.0}
    nodeids = [f"{file}::tests" for file in ("tests/flows/test_d.py", *sorted(seconds, reverse=True))]
    items = [SimpleNamespace(nodeid=nodeid) for nodeid in nodeids]
    items.sort(key=by_seconds(nodeids, seconds))  # type: ignore[arg-type]  # only the name of a test is asked for
    assert [item.nodeid.split("/")[1] for item in items] == ["contract", "contract", "flows", "flows"]


def test_a_new_file_begins_as_early_as_those_of_its_folder() -> None:
    seconds = {"tests/console/test_a.py": 20.0, "tests/console/test_b.py": 10.0, "tests/kube/test_c.py": 12.0}
    nodeids = [
        "tests/kube/test_new.py::t",
        "tests/kube/test_c.py::t",
        "tests/console/test_new.py::t",
        "tests/agent/test_new.py::t",
    ]
    items = [SimpleNamespace(nodeid=nodeid) for nodeid in nodeids]
    items.sort(key=by_seconds(nodeids, seconds))  # type: ignore[arg-type]  # only the name of a test is asked for
    assert [item.nodeid for item in items] == [nodeids[2], nodeids[0], nodeids[1], nodeids[3]]
