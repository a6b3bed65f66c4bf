"""Runs a command and ends all that it leaves behind, however deep and in whatever process group, when it ends.

On Linux an orphan below this process becomes its child, so none can get away. A signal that would end this process is sent on
first, and the command has its time to end by itself. Elsewhere only the command itself is ended.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

PR_SET_CHILD_SUBREAPER = 36
PATIENCE_S = 20.0
ENDING = (signal.SIGTERM, signal.SIGHUP)


def run(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> int:
    """Its exit code. Ctrl-C reaches the command from the terminal, as it does this process."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    for which in ENDING:
        signal.signal(which, _interrupt)
    with subprocess.Popen(argv, cwd=cwd, env=dict(env)) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
                process.wait(PATIENCE_S)
            raise
        finally:
            process.kill()
            process.wait()
            _end_strays()


def strays() -> list[int]:
    """All processes below this one."""
    parents = _parents()
    pids, below = [], {os.getpid()}
    while below := {pid for pid, parent in parents.items() if parent in below}:
        pids.extend(sorted(below))
    return pids


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _end_strays() -> None:
    """Until there is none: one that starts others while it is ended leaves those to this process."""
    until = time.monotonic() + PATIENCE_S
    named = False
    while (left := strays()) and time.monotonic() < until:
        if not named:
            sys.stderr.write(f"ended what was left running: {', '.join(_name(pid) for pid in left)}\n")
            named = True
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.02)


def _parents() -> dict[int, int]:
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if state not in "ZX":
                parents[int(stat.parent.name)] = int(parent)
    return parents


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return f"{pid} ({b' '.join(words[:6]).decode(errors='replace').strip()})"
    return str(pid)
