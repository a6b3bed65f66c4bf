"""Virtual environments of clients that nobody here wrote, each made from its requirements file once and kept."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.bootstrap.home import ROOT

HERE = Path(__file__).parent


def environment(name: str) -> Path:
    requirements = HERE / f"requirements-{name}.txt"
    digest = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = ROOT / ".convoy" / "clients" / f"{name}-{digest}"
    if not folder.exists():
        _make(folder, requirements)
    return folder


def _make(folder: Path, requirements: Path) -> None:
    """Scripts name the interpreter by its path, so it is made in its place; what is half made is removed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--requirement", str(requirements)]
    try:
        for command in ([sys.executable, "-m", "venv", str(folder)], pip):
            subprocess.run(command, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as e:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"{requirements.name} cannot be installed here: {e.stderr.strip().splitlines()[-1]}")
