"""A fresh clone of the repository with a product of its own, and a shell in it."""

import os
import re
import select
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from deploy.bootstrap.home import ROOT
from tests.support.free_ports import free_port

_OF_THE_TESTS = ("CONVOY", "DATABASE_URL", "DJANGO", "KUBECONFIG", "PYTEST", "PYTHONPATH", "REDIS_URL", "VIRTUAL_ENV")
_ASSIGNMENT = re.compile(r"(export )?[A-Z]+=")
_LONGEST_S = 240
_FIRST_S = 30
"""How long a command that follows something has for the first that it prints."""
_MORE_S = 0.5
"""How long it is watched then: an error that comes at once is seen."""


@dataclass
class Shell:
    folder: Path
    environment: dict[str, str]
    variables: list[str] = field(default_factory=list)
    """Assignments of the page so far."""
    left_running: list["subprocess.Popen[str]"] = field(default_factory=list)

    @classmethod
    def in_fresh_clone(cls, folder: Path) -> "Shell":
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
        copy_console(folder)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OF_THE_TESTS)}
        path = f"{folder / '.venv' / 'bin'}:{inherited['PATH']}"
        product = {"CONVOY_PORT": str(free_port()), "CONVOY_KUBE_PORT": str(free_port()), "PATH": path}
        product |= {"KUBECONFIG": str(folder / ".convoy" / "kubeconfig"), "CONVOY_DEMO_LIFE": "off"}
        return cls(folder, inherited | product)

    def run(self, command: str, timeout_s: float = _LONGEST_S) -> str:
        """What it prints. Fails unless it succeeds."""
        done = self._run(command, timeout_s)
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        if _ASSIGNMENT.match(command):
            self.variables.append(command)
        return done.stdout

    def refused(self, command: str) -> str:
        done = self._run(command, _LONGEST_S)
        assert done.returncode != 0, f"{command}\n{done.stdout}"
        return done.stdout

    def watched(self, command: str) -> str:
        """What a command prints first that may go on for ever; as long as it begins, its end does not matter."""
        with subprocess.Popen(["bash", "-c", self._text(command)], **self._options()) as process:
            readable, _, _ = select.select([process.stdout], [], [], _FIRST_S)
            assert readable, f"{command} prints nothing in {_FIRST_S} s"
            try:
                output, _ = process.communicate(timeout=_MORE_S)
                assert process.returncode == 0, f"{command}\n{output}"
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, _ = process.communicate()
        assert output.strip(), f"{command} prints nothing"
        return str(output)

    def leaves_running(self, command: str, ready: str) -> None:
        """Starts a command that goes on until `end`, and waits for the line by which it says that it is ready."""
        process = subprocess.Popen(["bash", "-c", f"exec {self._text(command)}"], **self._options())
        self.left_running.append(process)
        for line in process.stdout:
            if ready in line:
                return
        raise AssertionError(f"{command} ended with {process.wait()}")

    def end(self) -> None:
        for process in self.left_running:
            process.terminate()
            process.communicate()

    def _run(self, command: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
        options = self._options() | {"start_new_session": False}
        return subprocess.run(["bash", "-c", self._text(command)], timeout=timeout_s, check=False, **options)

    def _text(self, command: str) -> str:
        return (
            "\n".join([*self.variables, command])
            .replace("127.0.0.1:8443", self._kube)
            .replace("/tmp/lab", str(self.folder.with_name("lab")))
        )

    @property
    def _kube(self) -> str:
        return f"127.0.0.1:{self.environment['CONVOY_KUBE_PORT']}"

    def _options(self) -> dict[str, object]:
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return {**streams, "text": True, "cwd": self.folder, "env": self.environment, "start_new_session": True}


def copy_console(folder: Path) -> None:
    """The build of these tests' own checkout, for half a minute less; `up` builds it anew unless it is of the same sources."""
    built = ROOT / "frontend" / "web" / "dist"
    if built.exists():
        shutil.copytree(built, folder / "frontend" / "web" / "dist")
