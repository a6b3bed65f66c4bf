"""Waiting by progress: as long as the product's processes work, a slow machine is only slow.

Progress of a process is processor time it used or waited for, a line in its log, or a new state. A wait ends in a
``Problem`` only when no process that is waited for shows any, when one of them keeps crashing, or when all are gone.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from deploy.bootstrap import running
from deploy.bootstrap.home import Home
from deploy.bootstrap.problems import Problem
from deploy.bootstrap.running import ChildState
from deploy.supervisor import processes
from deploy.supervisor.liveness import Effort

STALLED_S = 90.0
NOTE_EVERY_S = 10.0
STEP_S = 0.1
"""Of processor time: less is the noise of an idle process."""
SUPERVISOR = "supervisor"
Signature = tuple[object, ...]


@dataclass
class Patience:
    """One wait. ``rows`` names the processes that it depends on."""

    home: Home
    rows: Callable[[], Sequence[ChildState]]
    note: Callable[[str], None]
    stalled_s: float = STALLED_S
    seen: dict[str, Signature] = field(default_factory=dict)
    moved: float = field(default_factory=time.monotonic)
    noted: float = field(default_factory=time.monotonic)

    def check(self) -> None:
        """Raise when waiting longer is useless; else now and then say which process does what."""
        rows = self.rows()
        if failing := [row.name for row in rows if row.is_failing]:
            raise Problem(f"{failing[0]} does not start. Its last words:\n{running.last_words(self.home, failing[0])}")
        now = time.monotonic()
        signatures = {row.name: self._signature(row) for row in rows}
        if signatures != self.seen:
            self.seen, self.moved = signatures, now
        if now - self.moved > self.stalled_s:
            raise Problem(self._stall(rows))
        if now - self.noted > NOTE_EVERY_S:
            self.noted = now
            self.note(describe(rows))

    def _signature(self, row: ChildState) -> Signature:
        log = self.home.logs / f"{row.name}.log"
        size = log.stat().st_size if log.exists() else 0
        busy_s = processes.effort(row.pid).busy_s if row.pid else 0.0
        return row.state, row.starts, row.pid, size, int(busy_s / STEP_S)

    def _stall(self, rows: Sequence[ChildState]) -> str:
        slow = [row.name for row in rows if row.pid] or [row.name for row in rows] or [SUPERVISOR]
        words = running.last_words(self.home, slow[0])
        return (
            f"No progress for {self.stalled_s:.0f} s: {', '.join(slow)} neither worked nor said anything. "
            f"Last words of {slow[0]}:\n{words}"
        )


def describe(rows: Sequence[ChildState]) -> str:
    """Which process does what, in one line."""
    at_work = [_describe(row) for row in rows if row.pid]
    later = [row.name for row in rows if not row.pid]
    return "; ".join(at_work + ([f"then {', '.join(later)}"] if later else []))


def _describe(row: ChildState) -> str:
    effort = processes.effort(row.pid or 0)
    waited = f", {effort.delay_s:.0f} s in line for a processor" if effort.delay_s > effort.cpu_s else ""
    return f"{row.name} {row.state} ({effort.cpu_s:.0f} s of work{waited})"


class WorkingClock:
    """Seconds in which the product could work: time spent waiting for a processor does not count."""

    def __init__(self, pids: Callable[[], Sequence[int]], now: Callable[[], float] = time.monotonic) -> None:
        self._pids = pids
        self._now = now
        self._looked = now()
        self._before = self._efforts()
        self.elapsed_s = 0.0

    def look(self) -> float:
        """The seconds so far."""
        now, efforts = self._now(), self._efforts()
        self.elapsed_s += (now - self._looked) * granted(self._before, efforts)
        self._looked, self._before = now, efforts
        return self.elapsed_s

    def _efforts(self) -> dict[int, Effort]:
        return {pid: processes.effort(pid) for pid in self._pids()}


def granted(before: dict[int, Effort], after: dict[int, Effort]) -> float:
    """The share of the processor time they asked for that they got; one when they asked for none."""
    kept = before.keys() & after.keys()
    cpu_s = sum(after[pid].cpu_s - before[pid].cpu_s for pid in kept)
    delay_s = sum(max(after[pid].delay_s - before[pid].delay_s, 0.0) for pid in kept)
    return cpu_s / (cpu_s + delay_s) if cpu_s > 0 and delay_s > 0 else 1.0
