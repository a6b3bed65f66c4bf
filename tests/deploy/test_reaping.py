"""A test run that ends, or is interrupted, leaves no process behind, however far away it was started."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.bootstrap.home import ROOT
from deploy.supervisor import processes
from tests.support.product import wait

AWAY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
open(sys.argv[1], "w").write(str(child.pid))
time.sleep(float(sys.argv[2]))
sys.exit(7)
"""
RUN = """
import os, signal, sys
from pathlib import Path
from deploy.bootstrap import reaping
signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background ignores it, and so would this process
sys.exit(reaping.run([sys.executable, *sys.argv[1:]], cwd=Path.cwd(), env=os.environ))
"""


def started(file: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RUN, "-c", AWAY, str(file), str(seconds)]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


def pid_in(file: Path) -> int:
    wait(lambda: file.exists() and file.read_text())
    return int(file.read_text())


def test_it_ends_what_a_run_left_behind_and_says_so(tmp_path: Path) -> None:
    with started(tmp_path / "pid", 0.1) as run:
        assert run.wait(180) == 7
        stray = pid_in(tmp_path / "pid")
        assert run.stderr is not None and f"{stray} (" in run.stderr.read()
    assert processes.born(stray) is None


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_it_ends_all_of_an_interrupted_run(tmp_path: Path, which: signal.Signals) -> None:
    with started(tmp_path / "pid", 300) as run:
        stray = pid_in(tmp_path / "pid")
        run.send_signal(which)
        assert run.wait(180) != 0
    assert processes.born(stray) is None
