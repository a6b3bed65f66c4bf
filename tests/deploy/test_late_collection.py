"""A run of several processes imports each file once, in the process that runs it, and loses no test by that."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.bootstrap.home import ROOT

INI = "[pytest]\naddopts = -m 'not bench' -q --import-mode=importlib\nmarkers = bench\n"
CONFTEST = """
import pytest
from pathlib import Path

@pytest.fixture(scope="module")
def shared(request):
    yield
    with Path("ended").open("a") as ended:
        print(request.module.__name__, file=ended)
"""
FILE = """
import pytest
from pathlib import Path

with Path("imported").open("a") as imported:
    print(__name__, file=imported)

@pytest.mark.parametrize("number", range(3))
def test_many(shared, number):
    assert not Path("ended").exists() or __name__ not in Path("ended").read_text().split()

@pytest.mark.bench
def test_not_here():
    raise AssertionError("the configuration deselects it")
"""
NAMES = [f"test_{letter}" for letter in "abcde"]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., str]:
    """Runs what is in the folder on two processes, and returns their output."""
    (tmp_path / "pytest.ini").write_text(INI)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(FILE)
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}

    def run(*arguments: str) -> str:
        plugins = ("-p", "xdist", "-p", "tests.support.late_collection", "-p", "no:cacheprovider")
        command = [sys.executable, "-m", "pytest", *plugins, "-n", "2", "--dist", "loadfile", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False)
        return done.stdout + done.stderr

    return run


def test_it_imports_each_file_once_and_reports_every_test_and_every_file_that_cannot_be_imported(run, tmp_path):
    (tmp_path / "test_broken.py").write_text("import nothing_of_this_name")
    (tmp_path / "test_fails.py").write_text("def test_one(): assert 0\ndef test_two(): pass")
    output = run()
    assert "1 failed, 16 passed, 1 error" in output
    assert "nothing_of_this_name" in output and "FAILED test_fails.py::test_one" in output
    assert sorted((tmp_path / "imported").read_text().split()) == NAMES
    assert sorted((tmp_path / "ended").read_text().split()) == NAMES


def test_a_file_of_which_all_tests_are_deselected_leaves_nothing_of_its_folder_to_the_next(run, tmp_path):
    for name, mark in {"f/test_a": "", "f/test_b": "@pytest.mark.bench", "g/test_c": ""}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").write_text(f"import pytest\n{mark}\ndef test_one(): pass\n")
    assert "2 passed in" in run("-n", "1", "f", "g")


def test_it_still_runs_single_tests_alone(run):
    assert "2 passed" in run("-k", "many and 1 and (test_b or test_d)")
