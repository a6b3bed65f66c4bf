"""The project's own ``.venv``: made, filled from ``uv.lock``, and left alone while the lock has not changed.

A stamp in ``.venv`` remembers which lock and which dependency groups it was filled from, so a warm start costs
one hash. Groups only add up: a start after a test run does not uninstall the test tools. Packages from elsewhere in an
environment without a stamp stay.
"""

import hashlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from deploy.bootstrap import locks, problems, tools
from deploy.bootstrap.problems import Problem
from deploy.bootstrap.progress import Steps

UV = "uv==0.13.8"
NEWEST = (3, 13)


class Environment:
    """One checkout's virtual environment."""

    def __init__(self, root: Path, steps: Steps) -> None:
        self.root = root
        self.steps = steps
        self.venv = root / ".venv"
        self.python = self.venv / "bin" / "python"
        self.uv = self.venv / "bin" / "uv"
        self.stamp = self.venv / ".convoy-stamp"

    def is_ours(self) -> bool:
        """Whether this very process runs in it."""
        return Path(sys.prefix).resolve() == self.venv.resolve()

    def ensure(self, *groups: str) -> None:
        """Does nothing when the stamp says that all of it is there."""
        if self.is_fresh(*groups):
            return
        try:
            with locks.held(self.root / "uv.lock"):
                if not self.is_fresh(*groups):
                    self._fill(groups)
        except OSError as error:
            raise problems.of_error(error, "make the Python environment") from error

    def groups(self) -> set[str]:
        return set(self._stamped().get("groups", []))

    def _fill(self, groups: tuple[str, ...]) -> None:
        wanted = sorted(self.groups() | set(groups))
        if not (self.uv.exists() and self.python.exists()):
            self._make()
        flags = [part for group in wanted for part in ("--group", group)]
        if not self.stamp.exists():
            flags.append("--inexact")
        with self.steps.step("Installing the locked packages"):
            tools.run(
                [self.uv, "sync", "--locked", "--no-progress", *flags],
                cwd=self.root,
                doing="install the locked packages",
                env={
                    "UV_PROJECT_ENVIRONMENT": str(self.venv),
                    "VIRTUAL_ENV": str(self.venv),
                    "UV_PYTHON_DOWNLOADS": "never",
                },
            )
        self.stamp.write_text(json.dumps({"lock": self._digest(), "groups": wanted}))

    def _make(self) -> None:
        check_python()
        with self.steps.step("Making .venv"):
            tools.run([sys.executable, "-m", "venv", self.venv], cwd=self.root, doing="make .venv")
            tools.run(
                [self.python, "-m", "pip", "install", "--quiet", "--retries", "2", "--disable-pip-version-check", UV],
                cwd=self.root,
                doing=f"install {UV}",
            )

    def is_fresh(self, *groups: str) -> bool:
        stamped = self._stamped()
        known = self.python.exists() and set(groups) <= set(stamped.get("groups", []))
        return known and stamped.get("lock") == self._digest()

    def _stamped(self) -> dict[str, Any]:
        try:
            stamp = json.loads(self.stamp.read_text())
        except (OSError, ValueError):
            return {}
        return stamp if isinstance(stamp, dict) else {}

    def _digest(self) -> str:
        digest = hashlib.sha256(str(self.venv).encode())
        for name in ("uv.lock", "pyproject.toml"):
            digest.update((self.root / name).read_bytes())
        return digest.hexdigest()


def check_python() -> None:
    """Refuses a Python that cannot make the environment, before anything is touched."""
    running = ".".join(str(part) for part in sys.version_info[:2])
    if sys.version_info[:2] > NEWEST:
        newest = ".".join(str(part) for part in NEWEST)
        raise Problem(
            f"Convoy runs on Python 3.11 to {newest}, and this is Python {running}: run it with one of those."
        )
    if any(importlib.util.find_spec(module) is None for module in ("venv", "ensurepip")):
        raise Problem(
            f"This Python has no venv module: install it (on Debian and Ubuntu: apt install python{running}-venv) "
            f"and run this again."
        )
