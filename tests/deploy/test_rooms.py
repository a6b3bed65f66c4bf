"""The house stays readable as it grows: folders hold few modules, and texts use the words of the field.

A folder with more modules than `MOST_MODULES` is searched instead of read: split it by the stages of its work, with a contract
in ``.importlinter``. `PRIVATE` are words that earlier texts used where the field has a name for the thing.
"""

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from deploy.bootstrap.home import ROOT

MOST_MODULES = 14
LARGER = {
    "jobs/kinds": (29, "one module for each kind of job, beside what they share"),
    "fleet/models": (25, "one module for each table or two"),
    "jobs/models": (16, "one module for each table or two"),
    "deploy/config": (27, "manifests of installations name its modules"),
    "deploy/bootstrap": (23, "what runs before anything is installed"),
    "frontend/cli/commands": (25, "one module for each command"),
}
"""Folders that may hold more, how many, and why."""

PRIVATE = re.compile(r"\b(?:told|tell|news|whoever|somebody|nobody)\b", re.IGNORECASE)
GENERATED = {"docs/permissions.md"}
"""It has a role ``nobody``, which means a user without any role."""


def tracked(*patterns: str) -> list[str]:
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


def product() -> list[str]:
    return [name for name in tracked("*.py") if not name.startswith(("tests/", "docs/"))]


def modules_by_folder(names: list[str]) -> Counter[str]:
    paths = [Path(name) for name in names]
    return Counter(
        str(path.parent) for path in paths if path.name != "__init__.py" and path.parent.name != "migrations"
    )


def too_large(folders: Counter[str]) -> dict[str, int]:
    return {name: count for name, count in folders.items() if count > LARGER.get(name, (MOST_MODULES, ""))[0]}


def private_words(name: str, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        yield from (f"{name}:{number}: {word}" for word in PRIVATE.findall(line))


def test_no_folder_of_the_product_holds_more_modules_than_can_be_taken_in() -> None:
    assert too_large(modules_by_folder(product())) == {}


def test_no_exception_outlives_its_folder() -> None:
    folders = modules_by_folder(product())
    assert [name for name in LARGER if folders[name] <= MOST_MODULES] == []


def test_it_sees_a_folder_that_has_grown_too_large() -> None:
    names = [f"jobs/new/m{number}.py" for number in range(15)] + ["jobs/new/__init__.py", "jobs/api/views.py"]
    assert too_large(modules_by_folder(names)) == {"jobs/new": 15}


def test_product_and_docs_use_the_words_of_the_field() -> None:
    names = [*product(), *(name for name in tracked("*.md") if name not in GENERATED)]
    assert [use for name in names for use in private_words(name, (ROOT / name).read_text())] == []


def test_it_sees_a_private_word() -> None:
    assert list(private_words("x.py", "a\nNobody is told.\ntelling")) == ["x.py:2: Nobody", "x.py:2: told"]
