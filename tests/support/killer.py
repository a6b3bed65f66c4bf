"""Runs one try at a work in a process of its own, which kills itself with SIGKILL at the n-th line of our code it comes to.

A line that runs again does not count again.

Started once; each request forks, so that a step costs milliseconds. Reads ``work_id line`` per request from its input and
answers ``killed`` or ``done``: when a run is done before its line comes up, there are no more steps.
"""

import importlib
import os
import signal
import sys
from types import FrameType
from typing import Any

import django

USUAL = (
    "jobs.services.dispatch.dispatcher jobs.services.dispatch.member_objects jobs.services.dispatch.dependents "
    "jobs.services.lifecycle.works jobs.services.failover.failover"
)
STEPS_IN = frozenset(os.environ.get("KILLER_STEPS_IN", USUAL).split())
"""Modules whose lines are steps."""


def main() -> None:
    django.setup()
    from django.conf import settings
    from django.db import connections

    settings.DATABASES["default"]["NAME"] = os.environ["KILLER_DATABASE"]
    connections.close_all()
    for module in STEPS_IN:
        importlib.import_module(module)
    print("ready", flush=True)
    for request in sys.stdin:
        work_id, line = (int(word) for word in request.split())
        child = os.fork()
        if child == 0:
            _try(work_id, line)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else "done" if status == 0 else f"broke {status}", flush=True)


def _try(work_id: int, line: int) -> None:
    from django.utils import timezone

    from jobs.services.dispatch import dispatcher

    seen: set[tuple[str, int]] = set()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_globals.get("__name__") not in STEPS_IN:
            return None
        if event == "line":
            seen.add((frame.f_code.co_filename, frame.f_lineno))
            if len(seen) == line:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
    dispatcher.push(work_id, timezone.now)


if __name__ == "__main__":
    main()
