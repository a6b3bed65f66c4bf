"""The blocks of all pages can be read: shell, Python, YAML and JSON without an error of syntax. Each is run or says why not."""

import ast
import json
import subprocess

import pytest
import yaml

from fleet.core.security import oidc
from tests.docs import unrun
from tests.docs.pages import DEVELOPMENT, PAGES, blocks, shell_of, title

EXCERPTS = [block for page in DEVELOPMENT for block in blocks(page) if block.language == "python"]
"""Lines to put into files, some from the middle of a statement: no program of their own."""
ALL = [block for page in [*PAGES, *DEVELOPMENT] for block in blocks(page) if block not in EXCERPTS]
LANGUAGES = {"", "sh", "python", "yaml", "json", "text", "ts", "tsx", "markdown"}


def name(block) -> str:
    return f"{block.page}-{block.number}-{block.language}"


@pytest.mark.parametrize("block", ALL, ids=name)
def test_it_is_in_a_known_language_and_can_be_read(block):
    assert block.language in LANGUAGES
    if block.language == "sh":
        done = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    elif block.language == "python":
        ast.parse(block.text)
    elif block.language == "yaml":
        list(yaml.safe_load_all(block.text))
    elif block.language == "json":
        json.loads(block.text)


def test_every_block_is_run_or_says_why_not_and_those_are_counted():
    """What is run is in `test_commands.py`: shell, Python and manifests of the pages that are followed."""
    followed = [page for page in [*PAGES, *DEVELOPMENT] if title(page) not in unrun.PAGES]
    runs = {"sh", "python", "yaml"}
    others = {block.name for page in followed for block in blocks(page) if block.language not in runs}
    assert others <= {*unrun.BLOCKS}
    known = {block.name for page in followed for block in blocks(page)}
    written = {command for page in followed for command in shell_of(page)}
    assert {*unrun.BLOCKS} <= known and {*unrun.COMMANDS} <= written
    assert {*unrun.PAGES} <= {title(page) for page in DEVELOPMENT if blocks(page)}
    commands = [command for page in followed for command in shell_of(page)]
    assert (len(unrun.PAGES), len(unrun.BLOCKS), len(unrun.COMMANDS)) == (6, 24, 13)
    assert len(commands) - sum(command in unrun.COMMANDS for command in commands) >= 72


def test_the_value_of_a_setting_on_the_page_is_one_that_is_read():
    [block] = [each for page in PAGES for each in blocks(page) if each.language == "json"]
    assert set(oidc.read_groups(block.text)) == {"ml-admins", "platform", "vision"}
