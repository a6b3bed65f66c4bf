"""docs/threat-model.md promises nothing without a test: each one that it names is there."""

import ast
import re

import pytest

from deploy.bootstrap.home import ROOT

TEXT = (ROOT / "docs" / "threat-model.md").read_text().partition("## What shows it")[2]
ROWS = [line for line in TEXT.splitlines() if line.startswith("| ")][1:]
_TEST = re.compile(r"`([a-z0-9_/]+\.py)(?:::(test_\w+))?`")


def functions_of(file: str) -> set[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    body = ast.parse((ROOT / "tests" / file).read_text()).body
    return {each.name for each in body if isinstance(each, functions) and each.name.startswith("test_")}


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_every_row_names_tests_that_are_there(row: str) -> None:
    named = _TEST.findall(row.rpartition(" | ")[2])
    assert named or row.startswith("| *Not shown*"), row
    for file, name in named:
        assert name in functions_of(file) if name else functions_of(file), (file, name)


def test_no_row_is_missed() -> None:
    assert len(ROWS) > 30
