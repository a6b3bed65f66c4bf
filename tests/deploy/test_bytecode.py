"""Compiled modules are kept, in the environment's own folder, also where the person's environment forbids to write them."""

import os
import subprocess
import sys
from pathlib import Path

from deploy.bootstrap.home import ROOT

SAYS = "import sys; print(sys.dont_write_bytecode, sys.pycache_prefix, flush=True)"


def asked(home: Path, **environ: str) -> str:
    """What a process that a command started says of itself. It imports no Django, of which a new folder has no modules."""
    (home / "says.py").write_text(SAYS)
    (home / "pytest.ini").write_text("[pytest]\n")
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    pytest = ("-c", str(home / "pytest.ini"), "-p", "xdist", "-n0", "-p", "says", "--markers", str(home))
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "test", *pytest],
        env={**known, "PYTHONPATH": str(home), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "CONVOY_HOME": str(home), **environ},
        capture_output=True, text=True, check=True, timeout=120,
    ).stdout.splitlines()[0]  # fmt: skip


def test_it_keeps_compiled_modules_in_the_environment_where_it_is_forbidden_to_write_them_beside_the_source(tmp_path):
    assert asked(tmp_path, PYTHONDONTWRITEBYTECODE="1") == f"False {ROOT / '.venv' / 'pycache'}"


def test_it_leaves_a_chosen_folder_alone(tmp_path):
    chosen = str(tmp_path / "chosen")
    assert asked(tmp_path, PYTHONPYCACHEPREFIX=chosen) == f"False {chosen}"
    assert asked(tmp_path, PYTHONPYCACHEPREFIX=chosen, PYTHONDONTWRITEBYTECODE="1") == f"True {chosen}"


def test_it_changes_nothing_where_nothing_is_forbidden(tmp_path):
    assert asked(tmp_path) == "False None"
