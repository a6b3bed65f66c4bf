"""Waits until the product is ready: each process by its own probe, then all together by ``/readyz``."""

import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence

from deploy.bootstrap import running
from deploy.bootstrap.home import Home
from deploy.bootstrap.patience import SUPERVISOR, Patience, WorkingClock
from deploy.bootstrap.problems import Problem
from deploy.bootstrap.progress import Steps
from deploy.bootstrap.running import ChildState

Supervisor = subprocess.Popen[bytes]
EVERY_S = 0.1
ANSWER_S = 10.0
TOGETHER_S = 90.0
"""Of time in which the product could work: from the last process that became ready to the whole product."""


def wait_all(home: Home, steps: Steps, supervisor: Supervisor | None = None) -> None:
    """Return when all is ready; a ``Problem`` names the process that does not get there, and its last words."""
    patience = Patience(home, lambda: late_rows(home, supervisor), steps.note)
    while not _children_are_ready(home):
        _check_supervisor(home, supervisor)
        patience.check()
        time.sleep(EVERY_S)
    clock = WorkingClock(lambda: [row.pid for row in all_rows(home) if row.pid])
    while fault := _product_fault(home):
        _check_supervisor(home, supervisor)
        if clock.look() > TOGETHER_S:
            raise Problem(f"All processes are ready, but the product is not: {fault}")
        time.sleep(EVERY_S)


def late_rows(home: Home, supervisor: Supervisor | None = None) -> Sequence[ChildState]:
    """The processes that are waited for: those that are not ready, or at first the supervisor itself."""
    rows = all_rows(home)
    if not rows and supervisor is not None:
        return [ChildState(SUPERVISOR, "starting", supervisor.pid, None, 1, None)]
    return [row for row in rows if not row.is_ready]


def all_rows(home: Home) -> list[ChildState]:
    return running.children(running.state(home)) if running.is_running(home) else []


def _check_supervisor(home: Home, supervisor: Supervisor | None) -> None:
    if supervisor is not None and supervisor.poll() is not None:
        raise Problem(f"The supervisor ended. Its last words:\n{running.last_words(home, SUPERVISOR)}")
    if supervisor is None and not running.is_running(home):
        raise Problem("Convoy was stopped.")


def _children_are_ready(home: Home) -> bool:
    rows = all_rows(home)
    return bool(rows) and all(row.is_ready for row in rows)


def _product_fault(home: Home) -> str:
    """Why the product as a whole is not ready: tasks must flow from beat to worker, and the watcher reach the database."""
    request = urllib.request.Request(f"http://127.0.0.1:{running.state(home).get('port')}/readyz")  # noqa: S310
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=ANSWER_S):
            return ""
    except urllib.error.HTTPError as error:
        return error.read().decode(errors="replace")
    except OSError as error:
        return str(error)
