"""Processes that the preloading process forks: asked for over its socket, adopted by the process that asks, and waited for."""

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
PATIENCE_S = 10.0
IS_POSSIBLE = sys.platform == "linux" and hasattr(os, "pidfd_open") and hasattr(socket, "send_fds")
_adopting = threading.Lock()
"""Only in these moments: what else loses its parent is no business of the supervisor."""


class Forked:
    """A process, with what the supervisor uses of `asyncio.subprocess.Process`."""

    def __init__(self, pid: int, stdout: asyncio.StreamReader) -> None:
        self.pid, self.stdout = pid, stdout
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._handle = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(self._handle, self._reap)

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)
        _, status = os.waitpid(self.pid, 0)
        self._ended.set_result(os.waitstatus_to_exitcode(status))


async def fork(
    door: Path, name: str, argv: Sequence[str], env: Mapping[str, str], death_signal: signal.Signals, limit: int
) -> Forked:
    """OSError: there is nothing that forks, or it does not answer."""
    reader, writer = os.pipe()
    try:
        pid = await asyncio.to_thread(ask, door, name, argv, env, death_signal, (writer, writer))
        stdout = asyncio.StreamReader(limit=limit)
        protocol = asyncio.StreamReaderProtocol(stdout)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(reader, "rb", buffering=0))
    except BaseException:
        with contextlib.suppress(OSError):
            os.close(reader)
        raise
    finally:
        os.close(writer)
    return Forked(pid, stdout)


def ask(
    door: Path,
    name: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    death_signal: signal.Signals,
    outputs: tuple[int, int],
) -> int:
    """The pid of a new process with these files as output and error output. It is this one's child: this process must be an
    ancestor of the one that forks, and adopts what is forked in the moment in which its maker ends.
    """
    request = {
        "name": name,
        "argv": [*argv],
        "env": dict(env),
        "death_signal": int(death_signal),
        "supervisor": os.getpid(),
    }
    libc = ctypes.CDLL(None)
    # Connected only in its turn: the one that forks answers in the order of connections, and would wait for one that waits.
    with _adopting, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(PATIENCE_S)
        line.connect(str(door))
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
        try:
            socket.send_fds(line, [json.dumps(request).encode()], list(outputs))
            said = line.recv(32)
        finally:
            libc.prctl(PR_SET_CHILD_SUBREAPER, 0)
    if not said:
        raise OSError(f"{door} ended without an answer")
    return int(said)
