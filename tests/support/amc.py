"""``kubectl amc`` as a person runs it: a stock kubectl that finds the plugin beside itself."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.kubectl import BINARY, PATIENCE_S


def cells(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


class Amc:
    """In one person's name."""

    def __init__(self, file: Path) -> None:
        self.kubeconfig = file
        paths = f"{BINARY.parent}{os.pathsep}{os.environ['PATH']}"
        self._env = {"PATH": paths, "KUBECONFIG": str(file), "HOME": str(file.parent)}

    def tries(self, *args: str) -> subprocess.CompletedProcess[str]:
        command = [str(BINARY), "amc", *args]
        return subprocess.run(command, env=self._env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    def says(self, *args: str) -> str:
        """What it prints when it succeeds."""
        done = self.tries(*args)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refused(self, *args: str) -> str:
        done = self.tries(*args)
        assert (done.returncode, done.stdout) == (1, ""), done.stdout
        return done.stderr

    @contextmanager
    def running(self, *args: str) -> Iterator[subprocess.Popen[str]]:
        command = [str(BINARY), "amc", *args]
        with subprocess.Popen(command, env=self._env, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.terminate()
