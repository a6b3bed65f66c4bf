"""The running product as seen from outside: is there a supervisor on this home, how are its children, and make it end.

The supervisor's lock is the truth about whether it lives; its state file only has details.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.bootstrap import locks
from deploy.bootstrap.home import ROOT, Home
from deploy.bootstrap.problems import last_lines
from deploy.supervisor import die_with_parent, processes

STOP_S = 40.0
GIT_S = 10.0
ENOUGH_STARTS = 4


@dataclass(frozen=True, slots=True)
class ChildState:
    """One row of the supervisor's state file."""

    name: str
    state: str
    pid: int | None
    born: str | None
    starts: int
    began: float | None

    @property
    def is_ready(self) -> bool:
        return self.state in ("ready", "done")

    @property
    def is_failing(self) -> bool:
        return not self.is_ready and self.starts >= ENOUGH_STARTS


def is_running(home: Home) -> bool:
    return locks.is_held(home.supervisor_lock)


def state(home: Home) -> dict[str, Any]:
    """Empty when there is none, or it cannot be read."""
    try:
        content = json.loads(home.state_file.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def revision(checkout: Path = ROOT) -> str:
    """The commit of the checkout; empty where it is none of git, lies in the repository of another, or git is away."""
    try:
        command = ["git", "-C", str(checkout), "rev-parse", "--show-toplevel", "HEAD"]
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=GIT_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    top, _, commit = answer.stdout.strip().partition("\n")
    return commit if answer.returncode == 0 and Path(top).resolve() == checkout.resolve() else ""


def other_revision(home: Home, here: str) -> str:
    """What to do where another commit runs than ``here``; empty: none does, or it is not known."""
    started = home.revision_file.read_text().strip() if home.revision_file.exists() else ""
    if not started or not here or started == here:
        return ""
    return (
        f"It runs commit {started[:12]}, and this checkout is at {here[:12]}: to run that one, stop it with"
        " `python3 manage.py down` and call `python3 manage.py up` again."
    )


def children(published: dict[str, Any]) -> list[ChildState]:
    return [ChildState(name=name, **row) for name, row in published.get("children", {}).items()]


def start(
    home: Home, *, port: int, broker_port: int, simulated: int, password: str, tied: bool, lively: bool
) -> subprocess.Popen[bytes]:
    """Leaves a supervisor running; ``tied``: it ends with this process, however this process ends."""
    argv = [sys.executable, "-m", "deploy.supervisor", "--home", str(home.path), "--port", str(port)]
    argv += ["--broker-port", str(broker_port), "--simulated", str(simulated)]
    argv += ["--lively"] if lively else []
    if tied:
        argv = [sys.executable, "-I", "-S", str(die_with_parent.__file__), "15", str(os.getpid()), *argv]
    with (home.logs / "supervisor.log").open("ab") as log:
        return subprocess.Popen(
            argv,
            cwd=ROOT,
            env={**os.environ, "CONVOY_BROKER_PASSWORD": password},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def last_words(home: Home, name: str, lines: int = 12) -> str:
    try:
        said = (home.logs / f"{name}.log").read_text(errors="replace")
    except OSError:
        said = ""
    return last_lines(said, lines)


def end(home: Home, started: subprocess.Popen[bytes] | None = None) -> bool:
    """Stops the supervisor and whatever of its children outlived an earlier one; whether there was anything to stop.

    ``started``: a supervisor that may not have come so far as to hold its lock.
    """
    if started is not None:
        processes.end(started.pid, processes.born(started.pid), STOP_S)
    was_running = is_running(home)
    published = _published(home) if was_running else state(home)
    if was_running and published:
        processes.end(int(published["pid"]), published["born"], STOP_S)
    strays = [row for row in children(published) if row.pid and processes.is_alive(row.pid, row.born)]
    for row in strays:
        processes.end(row.pid or 0, row.born, 5.0, group=True)
    home.state_file.unlink(missing_ok=True)
    return was_running or bool(strays)


def _published(home: Home) -> dict[str, Any]:
    """The state of a supervisor that holds its lock: it publishes right after it took it."""
    until = time.monotonic() + STOP_S
    while is_running(home) and time.monotonic() < until:
        published = state(home)
        if published and processes.is_alive(int(published["pid"]), published["born"]):
            return published
        time.sleep(0.05)
    return state(home)


def environment(home: Home) -> dict[str, str]:
    """What a command beside the running product needs to meet its database and its broker."""
    url = state(home).get("broker_url", "") if is_running(home) else ""
    variables = {"CONVOY_HOME": str(home.path), "DJANGO_SETTINGS_MODULE": "deploy.config.settings"}
    return variables | ({"REDIS_URL": url} if url and not os.environ.get("REDIS_URL") else {})
