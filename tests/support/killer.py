"""Runs one try at a work in a process of its own, which kills itself with SIGKILL right before or after its n-th effect.

An effect is a write to the database or to a member. Between two of them nothing changes, and a transaction is gone with every
write of it, so these are all the steps there are. Started once, it forks for each request, so that a step costs milliseconds:
it reads words of which the last is the step, and answers ``killed`` or ``done``. When a run is done before its step comes up,
there are no more steps.
"""

import gc
import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import django
import urllib3

_WRITES = ("INSERT", "UPDATE", "DELETE")
_READS = ("GET", "HEAD")


def serve(attempt: Callable[..., None]) -> None:
    """``attempt`` is given the words of a request but the step. The product must have been set up by now."""
    from django.conf import settings
    from django.db import connections

    settings.DATABASES["default"]["NAME"] = os.environ["KILLER_DATABASE"]
    connections.close_all()
    gc.collect()
    gc.freeze()
    print("ready", flush=True)
    for request in sys.stdin:
        *words, step = request.split()
        child = os.fork()
        if child == 0:
            with Steps(int(step)):
                attempt(*words)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else "done" if status == 0 else f"broke {status}", flush=True)


class Steps(ExitStack):
    """Counts what this process does to the world, and kills it at one of them."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self._last, self._passed = last, 0

    def __enter__(self) -> "Steps":
        from django.db import connection

        super().__enter__()
        self.enter_context(connection.execute_wrapper(self._execute))
        self.enter_context(patch.object(urllib3.PoolManager, "urlopen", self._request(urllib3.PoolManager.urlopen)))
        return self

    def _pass(self) -> None:
        self._passed += 1
        if self._passed == self._last:
            os.kill(os.getpid(), signal.SIGKILL)

    def _execute(self, execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        from django.db import connection

        if not sql.startswith(_WRITES):
            return execute(sql, *rest)
        self._pass()
        result = execute(sql, *rest)
        if not connection.in_atomic_block:
            self._pass()
        return result

    def _request(self, send: Callable[..., Any]) -> Callable[..., Any]:
        def counted(pool: Any, method: str, *rest: Any, **named: Any) -> Any:
            if method in _READS:
                return send(pool, method, *rest, **named)
            self._pass()
            response = send(pool, method, *rest, **named)
            self._pass()
            return response

        return counted


def push(work_id: str) -> None:
    from django.utils import timezone

    from jobs.services.dispatch import dispatcher

    dispatcher.push(int(work_id), timezone.now)


if __name__ == "__main__":
    django.setup()
    from jobs.services.dispatch import dispatcher  # noqa: F401 - each fork has it

    serve(push)
