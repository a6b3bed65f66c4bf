"""What the process of a pod uses up of this machine: disk space, files, output and processes, each with a bound.

The kernel bounds processes, memory and the size of one file (`launcher.LIMITS`). It has no bound for all files of a user on an
ordinary disk, so they are looked at every few seconds, and a pod beyond a bound is evicted, as a kubelet evicts.
"""

import contextlib
import os
import resource
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from simulator.node.runtime import launcher
from simulator.node.runtime.processes import Launch, Process

LOOK_S, REST = 5.0, 20.0
"""Between two looks at a pod; and at least so many times as long as the last one took."""
DEEPEST = 128
MIB, GIB = 1 << 20, 1 << 30


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one pod, with the claims it has mounted; and what the machine keeps free."""

    size: int = 10 * GIB
    files: int = 100_000
    output: int = 128 * MIB
    free_size: int = GIB
    free_files: float = 0.05
    """Of all the files that the file system can have."""
    small_size: int = 64 * MIB
    small_files: int = 1000
    """What a pod may have while the machine is low on space."""


@dataclass(slots=True)
class Used:
    size: int = 0
    files: int = 0
    too_deep: bool = False


def fault(launch: Launch, bounds: Bounds) -> str:
    """Why the pod is to be evicted. Empty if it stays."""
    output = used([launch.log.parent], bounds.files)
    if output.size > bounds.output:
        return f"The output of the container is larger than {bounds.output // MIB} MiB."
    own = used([launch.folder / "work", *launch.write], bounds.files)
    if own.too_deep:
        return f"The files of the pod are nested deeper than {DEEPEST} folders."
    if own.files > bounds.files:
        return f"The pod has more than {bounds.files} files in its folders and claims."
    if own.size > bounds.size:
        return f"Pod ephemeral local storage usage exceeds the total limit of {bounds.size // MIB} MiB."
    if machine_fault(launch.folder, bounds) and (own.size > bounds.small_size or own.files > bounds.small_files):
        return (
            f"The node was low on resource: ephemeral-storage. The pod uses {own.size // MIB} MiB in {own.files} files."
        )
    return ""


def machine_fault(folder: Path, bounds: Bounds) -> str:
    """Why no further process may start here. Empty if one may."""
    disk = os.statvfs(folder)
    if disk.f_bavail * disk.f_frsize < bounds.free_size:
        return f"this machine is low on disk space: less than {bounds.free_size // MIB} MiB are free"
    if disk.f_files and disk.f_favail < disk.f_files * bounds.free_files:
        return f"this machine is low on disk space: less than {bounds.free_files:.0%} of its files are free"
    return ""


def used(folders: Iterable[Path], most_files: int) -> Used:
    """What is in the folders. It counts no further once that is too much; a link is followed nowhere."""
    usage, waiting = Used(), [(str(folder), 0) for folder in dict.fromkeys(folders)]
    while waiting and usage.files <= most_files:
        path, depth = waiting.pop()
        usage.too_deep |= depth > DEEPEST
        with contextlib.suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                usage.files += 1
                usage.size += entry.stat(follow_symlinks=False).st_blocks * 512
                if usage.files > most_files:
                    break
                if depth <= DEEPEST and entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, depth + 1))
    return usage


def count_tasks(pid: int) -> int:
    """The processes and threads below a process, which may end meanwhile."""
    count, waiting = 0, [str(pid)]
    while waiting:
        process = waiting.pop()
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{process}/task").iterdir():
                count += 1
                waiting += (task / "children").read_text().split()
    return count


class Look:
    """One pod's process, looked at from time to time."""

    def __init__(self, process: Process, bounds: Bounds) -> None:
        self._process, self._bounds, self._due = process, bounds, 0.0
        self._is_told = False

    def due_in(self) -> float:
        return max(self._due - time.monotonic(), 0.0)

    def fault(self) -> str:
        """Why the pod is to be evicted. Empty if it stays."""
        began = time.monotonic()
        problem = fault(self._process.launch, self._bounds)
        ended = time.monotonic()
        self._due = ended + max(LOOK_S, (ended - began) * REST)
        return problem

    def warning(self) -> str:
        """Said once, when its processes are as many as they may be."""
        most = launcher.LIMITS[resource.RLIMIT_NPROC]
        if self._is_told or count_tasks(self._process.pid) < most:
            return ""
        self._is_told = True
        return f"The pod has {most} processes and threads, which is the limit: it can start no more."
