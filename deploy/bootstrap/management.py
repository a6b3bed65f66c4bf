"""Runs a management command of the product without starting Python anew: in a process forked from the one that has imported it.

To import Django for one line of output costs a second or more of processor time. Where nothing forks (not on Linux, a product
that another command started), the command is started by itself.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO

from deploy.bootstrap import problems, running, tools
from deploy.bootstrap.home import ROOT, Home
from deploy.supervisor import forked, product

Output = Callable[[], str]
"""Waits for the command's end and returns what it printed; a failure becomes a ``Problem``."""


@contextmanager
def command(home: Home, *argv: str, doing: str, may_fork: bool) -> Iterator[Output]:
    """Starts it; when the block is left it is gone. ``may_fork``: the supervisor is a child of this process."""
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as complaint:
        pid = _fork(home, argv, printed, complaint) if may_fork else None
        if pid is None:
            with _started(home, argv, doing) as process:
                yield partial(tools.output, process, doing)
            return
        tool = _Forked(pid, printed, complaint, doing)
        try:
            yield tool.output
        finally:
            tool.end()


def _fork(home: Home, argv: tuple[str, ...], printed: IO[str], complaint: IO[str]) -> int | None:
    """None when that is not possible."""
    door = product.preload_door(home.path)
    if door is None:
        return None
    env = {**os.environ, **running.environment(home)}
    outputs = (printed.fileno(), complaint.fileno())
    try:
        return forked.ask(door, argv[0], [str(ROOT / "manage.py"), *argv], env, signal.SIGKILL, outputs)
    except (OSError, ValueError):
        return None


def _started(home: Home, argv: tuple[str, ...], doing: str) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    command_line = [sys.executable, str(ROOT / "manage.py"), *argv]
    return tools.owned(command_line, cwd=ROOT, doing=doing, env=running.environment(home), stderr=subprocess.PIPE)


class _Forked:
    """A child of this process that was forked elsewhere."""

    def __init__(self, pid: int, printed: IO[str], complaint: IO[str], doing: str) -> None:
        self._pid, self._printed, self._complaint, self._doing = pid, printed, complaint, doing
        self._code: int | None = None

    def output(self) -> str:
        if self._wait():
            raise problems.of_output(_text(self._complaint) or _text(self._printed), self._doing)
        return _text(self._printed)

    def end(self) -> None:
        if self._code is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)
            self._wait()

    def _wait(self) -> int:
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._code


def _text(file: IO[str]) -> str:
    file.seek(0)
    return file.read()
