"""docs/acceptance.md is made of the statements and of the tests that show them: it claims nothing that no test shows."""

import ast
import os
import re
from functools import cache
from pathlib import Path

import pytest

from deploy.bootstrap.home import ROOT
from tests.acceptance import statements
from tests.acceptance.statements import ALL, GROUNDS, Statement

FILE = ROOT / "docs" / "acceptance.md"
WRITES = bool(os.environ.get("CONVOY_WRITE_ACCEPTANCE"))
_NAMED = re.compile(r"^test_(\d)_(\d)_(\d+)((?:_and_\d+)*)_")
HEAD = """# What the guides expect

Five guides for training on Kubernetes were read as 79 statements. This page is generated from the tests that show them
(`tests/acceptance`); one fails when it is out of date, and `CONVOY_WRITE_ACCEPTANCE=1` writes it. *Holds* has a test,
*partly* has a test and lacks what is said, *open* has none.

"""


@cache
def functions_in(file: Path) -> tuple[str, ...]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    body = ast.parse(file.read_text()).body
    return tuple(each.name for each in body if isinstance(each, functions) and each.name.startswith("test_"))


def numbers(name: str) -> list[str]:
    """``test_1_0_14_and_15_...`` is of 1.0.14 and 1.0.15."""
    if (match := _NAMED.match(name)) is None:
        return []
    return [f"{match[1]}.{match[2]}.{last}" for last in (match[3], *re.findall(r"\d+", match[4]))]


@cache
def by_number() -> dict[str, list[str]]:
    named: dict[str, list[str]] = {}
    for file in sorted(Path(statements.__file__).parent.glob("test_*.py")):
        for name in functions_in(file):
            for number in numbers(name):
                named.setdefault(number, []).append(f"tests/acceptance/{file.name}::{name}")
    return named


def proofs(statement: Statement) -> list[str]:
    return [*by_number().get(statement.number, []), *statement.tests]


def verdict(statement: Statement) -> str:
    if not proofs(statement):
        return "open"
    return "partly" if statement.lacks else "holds"


def page() -> str:
    verdicts = [verdict(each) for each in ALL]
    counts = ", ".join(f"{verdicts.count(each)} {each}" for each in ("holds", "partly", "open"))
    lines = [f"{len(ALL)} statements: {counts}.", "", "| ground | |", "|---|---|"]
    lines += [f"| {ground} | {text} |" for ground, text in GROUNDS.items()]
    lines += ["", "| | statement | verdict | by | ground | tests | lacks |", "|---|---|---|---|---|---|---|"]
    for each in ALL:
        shown = len(proofs(each))
        where, by = (each.ground, each.by) if shown else ("", "")
        files = sorted({proof.partition("::")[0] for proof in proofs(each)})
        named = ", ".join(f"`{file.removeprefix('tests/')}`" for file in files)
        lines.append(f"| {each.number} | {each.sentence} | {verdict(each)} | {by} | {where} | {named} | {each.lacks} |")
    return HEAD + "\n".join(lines) + "\n"


def test_each_of_the_79_statements_is_there_once():
    assert len(ALL) == 79 == len({each.number for each in ALL})
    assert by_number().keys() <= {each.number for each in ALL}


@pytest.mark.parametrize("statement", [each for each in ALL if each.tests], ids=lambda each: each.number)
def test_the_tests_it_names_exist(statement):
    for proof in statement.tests:
        file, _, name = proof.partition("::")
        assert name in functions_in(ROOT / file), proof


def test_what_is_open_says_what_it_lacks():
    assert [each.number for each in ALL if verdict(each) == "open" and not each.lacks] == []


def test_the_page_is_what_the_tests_say():
    if WRITES:
        FILE.write_text(page())
    assert FILE.read_text() == page(), "write it with CONVOY_WRITE_ACCEPTANCE=1"
