"""What the processes of a running product cost: processor time and wakeups by process, read from /proc."""

import contextlib
import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from deploy.bootstrap import running
from deploy.bootstrap.home import Home

TICKS_S = os.sysconf("SC_CLK_TCK")
PODS = "pods"
"""Name for the processes of pods that run for real: they are the jobs, not the product."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Since the process began. ``cpu_s`` counts children that have ended, ``wakeups`` those that live."""

    cpu_s: float = 0.0
    wakeups: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.cpu_s + other.cpu_s, self.wakeups + other.wakeups)

    def since(self, before: "Cost") -> "Cost":
        return Cost(max(self.cpu_s - before.cpu_s, 0.0), max(self.wakeups - before.wakeups, 0))


def costs(home: Home) -> dict[str, Cost]:
    """By the name of the process; what a process started counts as the process, but for pods."""
    state = running.state(home)
    roots = {row.pid: row.name for row in running.children(state) if row.pid} | {int(state["pid"]): "supervisor"}
    parents = _parents()
    sums: dict[str, Cost] = defaultdict(Cost)
    for pid in parents:
        if name := _name(pid, roots, parents):
            sums[name] += _cost(pid)
    return dict(sums)


def difference(after: dict[str, Cost], before: dict[str, Cost]) -> dict[str, Cost]:
    return {name: cost.since(before.get(name, Cost())) for name, cost in sorted(after.items())}


class Waiting:
    """How long the threads of this process have waited for a processor since it was made, compared with how long they ran."""

    def __init__(self) -> None:
        self._before = _turns()

    def slowdown(self) -> float:
        """One where no thread had to wait, and on systems that do not say it."""
        now = _turns()
        ran, waited = (sum(now[task][i] - self._before.get(task, (0, 0))[i] for task in now) for i in (0, 1))
        return 1 + waited / ran if ran else 1.0


def _turns() -> dict[str, tuple[int, int]]:
    """Of each thread: nanoseconds on a processor, and ready for one without getting it."""
    turns = {}
    for task in Path("/proc/self/task").glob("*"):
        with contextlib.suppress(OSError):  # it has ended
            ran, waited, _ = (task / "schedstat").read_text().split()
            turns[task.name] = int(ran), int(waited)
    return turns


def _name(pid: int, roots: dict[int, str], parents: dict[int, int]) -> str:
    """Of the process that started this one; a root may be the child of another root."""
    origin = pid
    while pid not in roots:
        if (pid := parents.get(pid, 0)) == 0:
            return ""
    return PODS if roots[pid] == "simulator" and origin != pid else roots[pid]


def _parents() -> dict[int, int]:
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (fields := _stat(int(folder.name))):
            parents[int(folder.name)] = int(fields[1])
    return parents


def _cost(pid: int) -> Cost:
    fields = _stat(pid)
    if not fields:
        return Cost()
    wakeups = sum(_wakeups(task) for task in Path(f"/proc/{pid}/task").glob("*/status"))
    return Cost(sum(map(int, fields[11:15])) / TICKS_S, wakeups)


def _stat(pid: int) -> list[str]:
    """The fields after the name, empty when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _wakeups(status: Path) -> int:
    """How often the thread slept and was woken."""
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
