"""Files of a folder that share an expensive server run in one process; the folder starts as early as its sum asks for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.bootstrap.home import ROOT
from tests.support.together import FOLDERS, scope_of

FILE = """
import os
from pathlib import Path

def test_it():
    with Path("ran").open("a") as ran:
        print(os.environ["PYTEST_XDIST_WORKER"], Path(__file__).parent.name, file=ran)
"""


@pytest.mark.parametrize(
    ("nodeid", "scope"),
    [
        ("tests/contract/test_a.py::test_1[real]", "tests/contract"),
        ("tests/realkube/test_a.py::tests", "tests/realkube"),
        ("tests/flows/test_a.py::test_1[a/b]", "tests/flows/test_a.py"),
    ],
)
def test_it_knows_what_one_process_runs_whole(nodeid: str, scope: str) -> None:
    assert scope_of(nodeid) == scope


def test_its_folders_are_there() -> None:
    assert [folder for folder in FOLDERS if not (ROOT / folder).is_dir()] == []


def test_one_process_runs_all_files_of_such_a_folder(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q --import-mode=importlib\n")
    for folder in ("contract", "flows"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        for name in "abcd":
            (tmp_path / "tests" / folder / f"test_{name}.py").write_text(FILE)
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    plugins = ("-p", "xdist", "-p", "tests.support.together", "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", *plugins, "-n", "2", "--dist", "loadfile", "tests"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert "8 passed" in done.stdout, done.stdout + done.stderr
    ran = [line.split() for line in (tmp_path / "ran").read_text().splitlines()]
    assert len({worker for worker, folder in ran if folder == "contract"}) == 1
    assert len({worker for worker, _ in ran}) == 2
