"""Virtual environments of clients that nobody here wrote, each made from its requirements file once and kept."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.bootstrap.home import ROOT

HERE = Path(__file__).parent


def environment(name: str, beside: Path | None = None) -> Path:
    """``beside`` is one whose packages it has, too, without a copy of them."""
    requirements = HERE / f"requirements-{name}.txt"
    about = requirements.read_bytes() + sys.version.encode() + (beside.name.encode() if beside else b"")
    digest = hashlib.sha256(about).hexdigest()[:12]
    # Not in the product's home, which is private once it is there: process pods have users of their own.
    folder = ROOT / ".venv" / "clients" / f"{name}-{digest}"
    if not folder.exists():
        _make(folder, requirements, beside)
    return folder


def _make(folder: Path, requirements: Path, beside: Path | None) -> None:
    """Scripts name the interpreter by its path, so it is made in its place; what is half made is removed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--requirement", str(requirements)]
    try:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True, text=True)
        if beside is not None:
            (_packages(folder) / "beside.pth").write_text(f"{_packages(beside)}\n")
        subprocess.run(pip, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as e:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"{requirements.name} cannot be installed here: {e.stderr.strip().splitlines()[-1]}")


def _packages(folder: Path) -> Path:
    return next(folder.glob("lib/python*/site-packages"))
