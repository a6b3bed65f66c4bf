"""Notices that no step has ended for too long, and writes the stacks of all threads into the log.

The stacks are those of `faulthandler`: it needs no cooperation of the thread that hangs, also when SIGUSR1 asks for them. The
format of the lines is documented in docs/runtime.md; the fleet reads them.
"""

from __future__ import annotations

import faulthandler
import re
import signal
import tempfile
import threading
import time
from typing import IO, Any

from convoy_runtime import lines

LEAST_SILENCE_S = 120.0
TIMES_A_STEP = 10.0
_POLL_S = 1.0
_WEIGHT = 0.2
"""Of the latest step in the mean."""
_MOST_DUMPS = 4
"""Of one silence: when it is too long, and each time it has doubled since."""
_MOST_THREADS = 64
_THREAD = re.compile(r"(?:Current thread|Thread) 0x([0-9a-fA-F]+)")
_FRAME = re.compile(r'\s+File "(.*)", line (\d+) in (.*)')


class _Pace:
    """When the last step ended, and how long one takes."""

    def __init__(self) -> None:
        self.step: int | None = None
        self.at = 0.0
        self.mean: float | None = None


_pace = _Pace()


def note_step(step: int, now: float) -> None:
    """A step has ended. ``now`` is monotonic."""
    if _pace.step is not None and step > _pace.step:
        took = (now - _pace.at) / (step - _pace.step)
        _pace.mean = took if _pace.mean is None else _pace.mean + _WEIGHT * (took - _pace.mean)
    _pace.step, _pace.at = step, now


def step_seconds() -> float | None:
    """The usual time of a step; None before the second one has ended."""
    return _pace.mean


class Watch:
    """Decides when to dump. Its caller has the clock."""

    def __init__(self, least_s: float) -> None:
        self._least_s = least_s
        self._dumps = 0
        self._step: int | None = None
        """The step after which it was silent."""

    def limit_s(self) -> float | None:
        """The silence that is too long; None while no step time is known, as in the first step."""
        return None if _pace.mean is None else max(self._least_s, TIMES_A_STEP * _pace.mean)

    def look(self, now: float) -> str:
        """``silence`` when it has just become too long, ``resumed`` when it is over, else nothing."""
        limit = self.limit_s()
        if limit is None:
            return ""
        if self._dumps and self._step != _pace.step:
            self._dumps = 0
            return "resumed"
        if self._dumps < _MOST_DUMPS and now - _pace.at >= limit * 2**self._dumps:
            self._dumps, self._step = self._dumps + 1, _pace.step
            return "silence"
        return ""


def watch(least_s: float) -> None:
    """Starts the thread that looks once a second."""
    dump = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - open as long as the process
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, file=dump, all_threads=True)
    threading.Thread(target=_run, args=(Watch(least_s), dump), name="convoy-watch", daemon=True).start()


def _run(watch: Watch, dump: IO[str]) -> None:
    while True:
        time.sleep(_POLL_S)
        now = time.monotonic()
        _print(dump, "signal")
        event = watch.look(now)
        if event:
            silent_s = round(now - _pace.at, 1)
            lines.emit(event, time.time(), step=_pace.step, silent_s=silent_s, limit_s=round(watch.limit_s() or 0.0, 1))
        if event == "silence":
            faulthandler.dump_traceback(dump, all_threads=True)
            _print(dump, "silence")


def _print(dump: IO[str], cause: str) -> None:
    """Writes what `faulthandler` has put into the file as lines of the log, and empties the file."""
    dump.seek(0)
    stacks = threads(dump.read())
    if not stacks:
        return
    dump.seek(0)
    dump.truncate()
    at = time.time()
    for part, stack in enumerate(stacks):
        _print_stack(at, {"cause": cause, "dump": int(at * 1000), "part": part, "parts": len(stacks)}, stack)


def _print_stack(at: float, about: dict[str, Any], stack: dict[str, Any]) -> None:
    """Frames that do not fit into a line are left out from the outermost on, and counted."""
    frames: list[str] = stack["frames"]
    kept = len(frames)
    while True:
        fields = {**about, "thread": stack["thread"], "frames": frames[:kept], "more": len(frames) - kept or None}
        if kept == 0 or len(lines.text("stack", at, **fields).encode()) < lines.LONGEST:
            break
        kept -= 1
    lines.emit("stack", at, **fields)


def threads(text: str) -> list[dict[str, Any]]:
    """The stacks in a dump: name of the thread and frames ``file:line function``, innermost first. Ours are left out."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    stacks: list[dict[str, Any]] = []
    for line in text.splitlines():
        if match := _THREAD.match(line):
            ident = int(match[1], 16)
            stacks.append({"thread": names.get(ident, hex(ident))[:60], "frames": []})
        elif stacks and (match := _FRAME.match(line)):
            stacks[-1]["frames"].append(f"{match[1][-200:]}:{match[2]} {match[3][:100]}")
    others = [stack for stack in stacks if not stack["thread"].startswith("convoy-")]
    return others[:_MOST_THREADS]
