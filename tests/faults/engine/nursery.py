"""Forks the processes of one world from an interpreter that has imported the product, so that a kill costs a fork.

The nursery is a process with one thread and no connection. It becomes, for each request, what the supervisor would have
started: same arguments, same environment, output to a log file. All of them die with it, and it dies with the engine.
"""

import contextlib
import faulthandler
import gc
import json
import os
import runpy
import signal
import socket
import sys
import time
from functools import wraps
from pathlib import Path
from typing import Any

from tests.faults.engine import steps, timings
from tests.faults.engine.dying import die_with
from tests.faults.engine.steps import Switchboard
from tests.faults.engine.wire import SENT_AT

MODULES = ("celery.bin.celery", "deploy.config.celery", "deploy.config.asgi", "deploy.config.kube", "uvicorn")


class Nursery:
    def __init__(self, board: Switchboard) -> None:
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            die_with(parent)
            try:
                _serve(theirs.makefile("rw"), board)
            finally:
                os._exit(0)
        theirs.close()
        self._line = ours.makefile("rw")

    def start(self, name: str, argv: tuple[str, ...], *, slot: int, log: Path) -> int:
        """The pid of a process that runs these arguments of Python; ``slot`` is the place of its clock."""
        self._line.write(json.dumps({"name": name, "argv": argv, "slot": slot, "log": str(log)}) + "\n")
        self._line.flush()
        return int(self._line.readline())

    def stop(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def use(database: dict[str, Any], broker: str, home: Path) -> None:
    """This process, and all that are forked from it, belong to the world with this database, broker and home."""
    from django.conf import settings
    from django.db import connections

    from deploy.config.celery import app

    connections.close_all()
    settings.DATABASES["default"].update(database)
    settings.CONVOY_HOME = home
    settings.REDIS_URL = settings.CELERY_BROKER_URL = broker
    settings.CHANNEL_LAYERS["default"]["CONFIG"]["hosts"][0]["address"] = broker
    app.conf.broker_url = app.conf.broker_read_url = app.conf.broker_write_url = broker


def _reap(*_: object) -> None:
    """Ended processes are waited for, so that their processor time is counted (`cost`)."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve(line: Any, board: Switchboard) -> None:
    signal.signal(signal.SIGCHLD, _reap)
    for text in line:
        request = json.loads(text)
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            die_with(parent)
            os.setpgid(0, 0)
            _become(request, board)
        line.write(f"{pid}\n")
        line.flush()


def _become(request: dict[str, Any], board: Switchboard) -> None:
    output = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)
    code = 1
    try:
        steps.install(board)
        timings.use_clock(board, request["slot"])
        _sign_requests(f"{request['name']}/{os.getpid()}")
        code = _run(list(request["argv"]))
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else 1
    except BaseException:  # noqa: BLE001 - the last words of the process
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _sign_requests(sender: str) -> None:
    """Members are asked in the name of this process, so that the judge knows who asked, and when (`wire`).

    A process may be stopped while a request is on its way: what counts is when it was sent, not when it arrived.
    """
    from fleet.member.client import MemberClient

    plain = MemberClient._sent

    @wraps(plain)
    def signed(self: MemberClient, method: str, url: str, body: Any, headers: Any, *args: Any, **options: Any) -> Any:
        headers["User-Agent"], headers[SENT_AT] = sender, repr(time.time())
        return plain(self, method, url, body, headers, *args, **options)

    MemberClient._sent = signed  # type: ignore[method-assign]


def _run(argv: list[str]) -> int:
    if argv[0] == "-m":
        sys.argv = argv[1:]
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = argv
        runpy.run_path(argv[0], run_name="__main__")
    return 0


def prepare() -> None:
    """Imports all that the processes need; call it once, in the process that worlds are forked from."""
    import importlib

    import django

    django.setup()
    for module in MODULES:
        importlib.import_module(module)
    timings.shorten()
    gc.collect()
    gc.freeze()
