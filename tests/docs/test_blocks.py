"""The blocks of all pages can be read: shell, Python, YAML and JSON without an error of syntax."""

import ast
import json
import subprocess

import pytest
import yaml

from tests.docs.pages import DEVELOPMENT, PAGES, blocks

EXCERPTS = [block for page in DEVELOPMENT for block in blocks(page) if block.language == "python"]
"""Lines to put into files, some from the middle of a statement: no program of their own."""
ALL = [block for page in [*PAGES, *DEVELOPMENT] for block in blocks(page) if block not in EXCERPTS]
LANGUAGES = {"sh", "python", "yaml", "json", "text", "ts", "tsx", "markdown"}


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
