"""Processor time of a world, from ``/proc``: of its own process, of those that run and of those that have been waited for."""

import os
from collections.abc import Iterable
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def processor_s(roots: Iterable[int]) -> float:
    """Of these processes and all below them."""
    return sum(_ticks(pid) for root in roots for pid in _below(root)) / _TICKS


def _below(root: int) -> list[int]:
    pids, todo = [], [root]
    while todo:
        pid = todo.pop()
        pids.append(pid)
        for thread in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                todo += map(int, thread.read_text().split())
            except (FileNotFoundError, ProcessLookupError):
                continue
    return pids


def _ticks(pid: int) -> int:
    """User and system time, own and that of children which were waited for."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(map(int, stat.rpartition(")")[2].split()[11:15]))


def waited_s(roots: Iterable[int]) -> float:
    """How long the threads of these processes, and of all below them, were ready to run and had no processor."""
    return sum(_delay_ns(pid) for root in roots for pid in _below(root)) / 1e9


def _delay_ns(pid: int) -> int:
    total = 0
    for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(thread.read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total
