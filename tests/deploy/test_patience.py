"""Waiting by progress: what ends a wait, what does not, requests that are sent again, and tools that leave no orphan."""

import http.server
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.bootstrap import patience, tools
from deploy.bootstrap.home import ROOT, Home
from deploy.bootstrap.patience import Patience, WorkingClock
from deploy.bootstrap.problems import Problem
from deploy.bootstrap.progress import Steps
from deploy.bootstrap.rest import Api
from deploy.bootstrap.running import ChildState
from deploy.supervisor import processes
from deploy.supervisor.liveness import Effort

DEADLINE_S = 60.0


def wait(condition: Callable[[], object]) -> None:
    until = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.make()
    return home


@contextmanager
def child(code: str, starts: int = 1) -> Iterator[ChildState]:
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", code]) as process:
        try:
            yield ChildState("web", "starting", process.pid, processes.born(process.pid), starts, None)
        finally:
            process.kill()


def test_it_waits_for_a_slow_process_that_works(home: Home) -> None:
    with child("while True: pass") as row:
        waiting = Patience(home, lambda: [row], str, stalled_s=0.5)
        began = time.monotonic()
        while time.monotonic() - began < 2.0:
            waiting.check()
            time.sleep(0.02)


def test_it_gives_up_on_a_process_that_does_nothing(home: Home) -> None:
    (home.logs / "web.log").write_text("waiting for a lock\n")
    with child("import time; time.sleep(600)") as row:
        waiting = Patience(home, lambda: [row], str, stalled_s=0.5)
        with pytest.raises(Problem, match="No progress(.|\n)*web(.|\n)*waiting for a lock"):
            wait(lambda: waiting.check())


def test_a_line_in_the_log_is_progress(home: Home) -> None:
    with child("import time; time.sleep(600)") as row:
        waiting = Patience(home, lambda: [row], str, stalled_s=0.5)
        for _ in range(20):
            with (home.logs / "web.log").open("a") as log:
                log.write("applying a migration\n")
            waiting.check()
            time.sleep(0.05)


def test_it_gives_up_on_a_process_that_keeps_crashing(home: Home) -> None:
    row = ChildState("web", "backoff", None, None, 4, None)
    with pytest.raises(Problem, match="web does not start"):
        Patience(home, lambda: [row], str).check()


def test_it_says_which_process_does_what(home: Home) -> None:
    rows = [
        ChildState("migrate", "starting", os.getpid(), None, 1, None),
        ChildState("web", "waiting", None, None, 0, None),
    ]
    assert patience.describe(rows).startswith("migrate starting (")
    assert patience.describe(rows).endswith("then web")


def test_time_without_a_processor_does_not_count() -> None:
    assert patience.granted({1: Effort(0, 0)}, {1: Effort(1.0, 9.0)}) == pytest.approx(0.1)
    assert patience.granted({1: Effort(0, 0)}, {1: Effort(0, 0), 2: Effort(5, 50)}) == 1.0


def test_the_clock_runs_on_an_idle_machine() -> None:
    times = iter([0.0, 10.0])
    assert WorkingClock(lambda: [], lambda: next(times)).look() == 10.0


class Server(http.server.BaseHTTPRequestHandler):
    """Drops the first request, says 503 to the second, and answers the third."""

    asked = 0

    def do_GET(self) -> None:  # noqa: N802
        type(self).asked += 1
        if type(self).asked == 1:
            self.connection.close()
            return
        status, body = (503, {}) if type(self).asked == 2 else (200, {"name": "ada"})
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    Server.asked = 0
    server = http.server.HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def test_it_asks_again_when_there_is_no_answer(port: int) -> None:
    assert Api(port, "token").get("me/").body == {"name": "ada"}


def test_it_stops_asking_when_the_product_is_gone(port: int) -> None:
    def gone() -> None:
        raise Problem("web does not start")

    with pytest.raises(Problem, match="web does not start"):
        Api(port, "token", gone).get("me/")
    assert Server.asked == 1


PARENT = """
import sys
import signal
from pathlib import Path
from deploy.bootstrap import tools
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with it ignored
tools.run(["sh", "-c", "sleep 300 & echo $! > " + sys.argv[1] + "; wait"], cwd=Path("/"), doing="sleep")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child to its parent's death")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_tool_does_not_outlive_a_killed_command(tmp_path: Path, number: signal.Signals) -> None:
    file = tmp_path / "grandchild"
    with subprocess.Popen([sys.executable, "-c", PARENT, str(file)], cwd=ROOT, stderr=subprocess.DEVNULL) as parent:
        wait(lambda: file.exists() and file.read_text().strip())
        parent.send_signal(number)
        parent.wait(DEADLINE_S)
    wait(lambda: processes.born(int(file.read_text())) is None)


def test_a_step_shows_what_it_waits_for() -> None:
    steps = Steps(io.StringIO())
    with steps.step("Starting"):
        steps.note("migrate starts")
    assert "Starting ... \n    migrate starts ... " in steps.out.getvalue()  # type: ignore[attr-defined]


def test_a_missing_tool_is_named() -> None:
    with pytest.raises(Problem, match="no program no-such-tool"):
        tools.run(["no-such-tool"], cwd=ROOT, doing="build")
