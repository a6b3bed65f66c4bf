"""The command line as a person runs it, but for the start of Python: forked from a process that has imported it.

To import it takes a third of a second of processor time for each of some hundred commands. A command has its own process, home,
environment, input and outputs, and ends as any other does. What it reads of its environment while it is imported is that of
the process that forks: who sets such a variable starts Python.
"""

import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NoReturn

COMMAND = "frontend.cli.main"
LONGEST = 2**20
"""Bytes of a request: arguments and environment."""
PATIENCE_S = 120.0


@dataclass
class Said:
    code: int
    out: str
    err: str


def run(words: Sequence[str], env: Mapping[str, str], cwd: Path, stdin: str) -> Said:
    """Waits for its end. The outputs are files, so that it never waits for a reader."""
    with TemporaryFile("w+") as given, TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        given.write(stdin)
        given.seek(0)
        request = json.dumps({"words": [*words], "env": dict(env), "cwd": str(cwd)}).encode()
        line = _line()
        socket.send_fds(line, [request], [each.fileno() for each in (given, out, err)])
        code = int(line.recv(16))
        out.seek(0)
        err.seek(0)
        return Said(code, out.read(), err.read())


@cache
def _line() -> socket.socket:
    """To the process that forks. It ends when this one does, which closes the line."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    here.settimeout(PATIENCE_S)
    here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": os.devnull,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    with there:
        subprocess.Popen([sys.executable, "-m", __name__, str(there.fileno())], pass_fds=[there.fileno()], env=env)
    return here


def serve(line: socket.socket) -> None:
    """One command after the other, until the process that asks has closed the line."""
    _import_all()
    while True:
        request, files, _, _ = socket.recv_fds(line, LONGEST, 3)
        if not request:
            return
        child = os.fork()
        if child == 0:
            line.close()
            _become(json.loads(request), files)
        for file in files:
            os.close(file)
        _, status = os.waitpid(child, 0)
        line.send(str(os.waitstatus_to_exitcode(status)).encode())


def _import_all() -> None:
    """Much is imported when a command first needs it, by one that finds no server too."""
    main = importlib.import_module(COMMAND).main
    sys.argv = [COMMAND, "--server", "http://127.0.0.1:9", "get", "jobs"]
    with suppress(SystemExit), redirect_stderr(StringIO()):
        main()


def _become(request: dict[str, Any], files: list[int]) -> NoReturn:
    for place, file in enumerate(files):
        os.dup2(file, place)
        os.close(file)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = [COMMAND, *request["words"]]
    del sys.modules[COMMAND]
    runpy.run_module(COMMAND, run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
