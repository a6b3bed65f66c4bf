"""docs/development/kind.md adds a working kind: its blocks are put into a copy of the checkout, its commands run there."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

import pytest

from tests.support import template

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "development" / "kind.md"
LEFT_OUT = (".git", ".venv", ".convoy", "node_modules", ".*_cache", ".hypothesis", "dist")
NOT_RUN = ("python3 manage.py", "make lint")
"""They make the .venv that this test is run by, and check every other file of the checkout as well."""
_BLOCK = re.compile(r"(?P<above>[^\n]*)\n+^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^`(?P<file>[\w./-]+)`(?:, after `(?P<line>[^`]+)`)?(?:\. .*)?:$")
PATIENCE_S = 300


@dataclass(frozen=True)
class Block:
    above: str
    language: str
    text: str


def blocks() -> Iterator[Block]:
    for found in _BLOCK.finditer(PAGE.read_text()):
        yield Block(found["above"], found["language"], found["text"])


def put(block: Block, checkout: Path) -> None:
    """Where the line above the block says that it belongs."""
    named = _FILE.match(block.above)
    assert named, f"does not say where it belongs: {block.above!r}"
    file, line = checkout / named["file"], named["line"]
    if line is None:
        assert not file.exists(), f"{file} is there already"
        file.write_text(block.text)
        return
    lines = file.read_text().splitlines(keepends=True)
    fitting = [number for number, each in enumerate(lines) if each.strip().startswith(line)]
    assert len(fitting) == 1, f"{named['file']} has {len(fitting)} lines that begin with {line}"
    before = lines[fitting[0]]
    added = indent(block.text, before[: len(before) - len(before.lstrip())])
    file.write_text("".join([*lines[: fitting[0] + 1], added, *lines[fitting[0] + 1 :]]))


def of_the_kind(command: str) -> str:
    """The tests of the other kinds run as they are."""
    return f"{command} -k paint" if "-m pytest" in command and "-k" not in command else command


def run(command: str, checkout: Path) -> None:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "CONVOY_", "DJANGO_"))}
    done = subprocess.run(
        ["bash", "-euc", command],
        cwd=checkout,
        env=kept,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-6000:]}{done.stderr[-3000:]}"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """With its bytecode and the migrated database, which a checkout in which tests have run has too."""
    made = tmp_path / "checkout"
    shutil.copytree(ROOT, made, ignore=shutil.ignore_patterns(*LEFT_OUT))
    (made / ".venv").symlink_to(ROOT / ".venv")
    database = made / template.file().relative_to(ROOT)
    database.parent.mkdir(parents=True)
    template.copy_to(database)
    return made


def test_the_page_on_kinds_adds_a_working_kind(checkout):
    for block in blocks():
        if block.language != "sh":
            put(block, checkout)
            continue
        commands = [block.text] if "\\\n" in block.text else block.text.splitlines()
        for command in commands:
            if not command.startswith(NOT_RUN):
                run(of_the_kind(command), checkout)
    run(".venv/bin/ruff format --no-cache --check . && .venv/bin/ruff check --no-cache .", checkout)
