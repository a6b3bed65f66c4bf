"""Identifies a process uniquely: a pid alone may be reused by another process."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from deploy.supervisor.liveness import Effort

TICKS_S = os.sysconf("SC_CLK_TCK")


def born(pid: int) -> str | None:
    """When the process started, as the kernel spells it; None when there is no such process (or only its remains)."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            after_name = stat.read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return None if after_name[0] in "ZX" else after_name[19]
    said = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return said.stdout.strip() or None


def is_alive(pid: int, birth: str | None) -> bool:
    return birth is not None and born(pid) == birth


def memory_mib(pid: int) -> float:
    """Resident memory; zero where it cannot be known."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def effort(pid: int) -> Effort:
    """Processor time used by the process and its ended children, and time it waited for a processor; zero when gone."""
    if not Path("/proc/self/stat").exists():
        return Effort(_cpu_by_ps(pid))
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return Effort()
    delays = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            delays += int(task.read_text().split()[1])
    return Effort(sum(int(ticks) for ticks in fields[11:15]) / TICKS_S, delays / 1e9)


def _cpu_by_ps(pid: int) -> float:
    """Where there is no /proc: [[days-]hours:]minutes:seconds."""
    printed = subprocess.run(["ps", "-o", "time=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    parts = [float(part) for part in printed.strip().replace("-", ":").split(":") if part]
    return float(sum(part * 60.0**place for place, part in enumerate(reversed(parts))))


def end(pid: int, birth: str | None, patience_s: float, *, group: bool = False) -> bool:
    """Asks it to end, then makes it; whether it is gone."""
    for which, wait_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 5.0)):
        if not is_alive(pid, birth):
            return True
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(pid, which)
        until = time.monotonic() + wait_s
        while is_alive(pid, birth) and time.monotonic() < until:
            time.sleep(0.05)
    return not is_alive(pid, birth)
