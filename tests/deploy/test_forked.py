"""Processes that are forked from one that has imported the product: children of the supervisor like any other."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.bootstrap.home import ROOT
from deploy.supervisor import forked, processes
from tests.support.product import wait

pytestmark = pytest.mark.skipif(not forked.IS_POSSIBLE, reason="forks on Linux only")
PROGRAM = """
import asyncio, sys
from pathlib import Path
from deploy.supervisor import probes
from deploy.supervisor.child import Spec
from deploy.supervisor.supervisor import Supervisor
home = Path(sys.argv[1])
door = home / "d"
env = {"CONVOY_HOME": str(home), "DJANGO_SETTINGS_MODULE": "deploy.config.settings"}
specs = [
    Spec("preload", (sys.executable, "-m", "deploy.config.preload", str(door)), probes.listens(door), env),
    Spec("a", (sys.executable, str(home / "say.py"), "one", "two"), probes.always, env | {"MINE": "yes"}, after=("preload",),
         forked_by=door),
]
asyncio.run(Supervisor(specs, home, home / "state.json", {"port": 1}).run())
"""
SAY = """
import json, os, sys, time
print(json.dumps({
    "argv": sys.argv[1:], "parent": os.getppid(), "group": os.getpgid(0), "pid": os.getpid(), "mine": os.environ.get("MINE"),
    "imported": "django" in sys.modules, "threads": len(os.listdir("/proc/self/task")), "main": __name__,
}), flush=True)
time.sleep(300)
"""


class Running:
    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "say.py").write_text(SAY)
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(home)], cwd=ROOT)

    def child(self, name: str) -> dict[str, object]:
        state = self.home / "state.json"
        return dict(json.loads(state.read_text())["children"][name]) if state.exists() else {}

    def pid(self, name: str) -> int:
        return int(str(self.child(name).get("pid") or 0))

    def said(self) -> list[dict[str, object]]:
        log = self.home / "a.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [json.loads(line) for line in lines if line.startswith("{")]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path)
    wait(made.said)
    yield made
    made.process.terminate()
    made.process.wait(60)


def test_it_is_the_supervisors_child_with_arguments_and_an_environment_of_its_own(running: Running) -> None:
    (said,) = running.said()
    pid = running.pid("a")
    assert said == {
        "argv": ["one", "two"], "parent": running.process.pid, "group": pid, "pid": pid, "mine": "yes",
        "imported": True, "threads": 1, "main": "__main__",
    }  # fmt: skip


def test_a_killed_one_is_forked_again(running: Running) -> None:
    os.kill(running.pid("a"), signal.SIGKILL)
    wait(lambda: len(running.said()) == 2)
    assert running.said()[1]["imported"] and "ended with -9" in (running.home / "a.log").read_text()


def test_it_outlives_the_process_that_forked_it_and_starts_by_itself_without_one(running: Running) -> None:
    first = running.pid("a")
    (running.home / "d").unlink()
    os.kill(first, signal.SIGKILL)
    wait(lambda: len(running.said()) == 2)
    assert not running.said()[1]["imported"] and "is started by itself" in (running.home / "a.log").read_text()
    second = running.pid("a")
    os.kill(running.pid("preload"), signal.SIGKILL)
    wait(lambda: running.child("preload")["starts"] == 2)
    assert running.pid("a") == second and processes.born(second) is not None


def test_it_ends_with_the_supervisor(running: Running) -> None:
    pids = [running.pid("a"), running.pid("preload")]
    os.kill(running.process.pid, signal.SIGKILL)
    wait(lambda: not any(processes.born(pid) for pid in pids))


def test_a_caller_that_waits_its_turn_is_not_connected_yet(tmp_path: Path) -> None:
    """Connected, it would keep the one whose turn it is from being heard: they are answered in the order in which they came."""
    door, asked = tmp_path / "d", list[int]()

    def ask() -> None:
        asked.append(forked.ask(door, "a", ("-c", ""), {}, signal.SIGTERM, (1, 2)))

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(door))
        listening.listen()
        caller = threading.Thread(target=ask)
        with forked._adopting:
            caller.start()
            listening.settimeout(0.3)
            with pytest.raises(TimeoutError):
                listening.accept()
        listening.settimeout(60)
        line, _ = listening.accept()
        with line:
            _, files, _, _ = socket.recv_fds(line, 64 * 1024, 2)
            line.sendall(b"7")
        caller.join(60)
    for each in files:
        os.close(each)
    assert asked == [7]
