"""Imports the product once and forks its processes: ``python -m deploy.config.preload SOCKET``. Linux only.

To import Django and all apps costs each process a second or more of processor time, which they would all spend at once. The
process here does it, serves nothing, and becomes what the supervisor asks for: a module or a script with its arguments.
It has one thread and no connection to anything, so that nothing is shared over a fork but memory that is only read.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import time
from pathlib import Path
from typing import cast

from deploy.supervisor.die_with_parent import PR_SET_PDEATHSIG

PR_SET_NAME = 15
REQUEST = 256 * 1024
SILENT_S = 1.0
"""A caller that has asked for nothing after this is hung up on: others wait behind it."""
ADOPTED_S = 10.0
"""A process that another one adopted than the one that asked for it ends after this."""
MODULES = ("celery.bin.celery", "deploy.config.celery", "django.core.management", "rest_framework.views", "uvicorn")


def main() -> None:
    import django

    django.setup()
    for module in MODULES:
        importlib.import_module(module)
    importlib.import_module("fleet.db.migrated").of_code()  # what is read from disk is shared as well
    gc.collect()
    gc.freeze()
    argv = _serve(Path(sys.argv[1]))
    _become(argv)


def _serve(path: Path) -> list[str]:
    """Fork for each request; returns in the forked process only, with what it is to be."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(str(path))
        path.chmod(0o600)
        door.listen(16)
        while True:
            caller, _ = door.accept()
            with caller:
                if argv := _answer(caller, door):
                    return argv


def _answer(caller: socket.socket, door: socket.socket) -> list[str]:
    """Nothing in the process that answers; in the one that was forked, what it is to be."""
    caller.settimeout(SILENT_S)
    with contextlib.suppress(OSError, ValueError, KeyError):
        payload, files, _, _ = socket.recv_fds(caller, REQUEST, 2)
        if payload:
            return _fork(json.loads(payload), files, caller, door)
    return []


def _fork(asked: dict[str, object], files: list[int], caller: socket.socket, door: socket.socket) -> list[str]:
    reader, writer = os.pipe()
    middle = os.fork()
    if middle == 0:
        try:
            if pid := os.fork():
                with contextlib.suppress(OSError):
                    os.setpgid(pid, pid)
                os.write(writer, str(pid).encode())
                os._exit(0)
            for each in (door, caller):
                each.close()
            for end in (reader, writer):
                os.close(end)
            _settle(asked, files)
            return [str(word) for word in cast(list[str], asked["argv"])]
        except Exception:  # noqa: BLE001 - whatever it is: a forked process must not go on as a second one that forks
            os._exit(1)
    os.close(writer)
    os.waitpid(middle, 0)
    caller.sendall(os.read(reader, 32))
    for end in (reader, *files):
        os.close(end)
    return []


def _settle(asked: dict[str, object], outputs: list[int]) -> None:
    """A process group, outputs, an environment and a parent of its own: the one that asked, with which it dies."""
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    supervisor = int(str(asked["supervisor"]))
    until = time.monotonic() + ADOPTED_S
    while (parent := os.getppid()) != supervisor:
        if parent == 1 or time.monotonic() > until:
            os._exit(1)
        time.sleep(0.001)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, int(str(asked["death_signal"])))
    libc.prctl(PR_SET_NAME, f"convoy-{asked['name']}".encode()[:15])
    if os.getppid() != supervisor:
        os._exit(1)
    for output, number in zip(outputs, (1, 2), strict=True):
        os.dup2(output, number)
    for output in outputs:
        os.close(output)
    os.environ.clear()
    os.environ.update(dict(asked["env"]))  # type: ignore[call-overload]
    signal.set_wakeup_fd(-1)


def _become(argv: list[str]) -> None:
    """As Python itself does it with these arguments."""
    if argv[0] == "-m":
        sys.argv = argv[1:]
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = argv
        sys.path[0] = str(Path(argv[0]).parent)
        runpy.run_path(argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
