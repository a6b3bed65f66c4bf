"""Ends a worker one of whose tasks has run for longer than its limit.

Celery enforces its limits in a pool of processes only, and a thread cannot be ended from outside: a task that hangs would
hold its thread for ever. So the whole process ends, after the log has the place where the task stands. The supervisor starts
the worker again; every task may be killed at any time, and what it had claimed is taken up by others.
"""

import os
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

from celery import Task, bootsteps
from celery.signals import task_postrun, task_prerun
from structlog import get_logger

log = get_logger(__name__)

EVERY_S = 5.0
_STATUS = 75
"""EX_TEMPFAIL: a later try may succeed."""


@dataclass(frozen=True, slots=True)
class Run:
    task: str
    since: float
    limit_s: float
    thread: int


_runs: dict[str, Run] = {}


@task_prerun.connect
def _began(task_id: str, task: Task[Any, Any], **_: Any) -> None:
    limit_s = task.time_limit or task.app.conf.task_time_limit
    _runs[task_id] = Run(task.name, monotonic(), limit_s, threading.get_ident())


@task_postrun.connect
def _ended(task_id: str, **_: Any) -> None:
    _runs.pop(task_id, None)


def enforce(now: float, end: Callable[[int], object] = os._exit) -> None:
    """Ends the process when a task is overdue at ``now``, on the monotonic clock."""
    overdue = [run for run in list(_runs.values()) if now - run.since > run.limit_s]
    for run in overdue:
        frame = sys._current_frames().get(run.thread)
        stack = "".join(traceback.format_stack(frame)) if frame else ""
        log.critical("task overdue", task=run.task, seconds=round(now - run.since), limit_s=run.limit_s, stack=stack)
    if overdue:
        sys.stdout.flush()
        sys.stderr.flush()
        end(_STATUS)


class TaskLimits(bootsteps.StartStopStep):
    """Looks at the running tasks from the loop that takes tasks from the broker."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, consumer: Any, **_: Any) -> None:
        self._entry: Any = None

    def start(self, consumer: Any) -> None:
        self._entry = consumer.timer.call_repeatedly(EVERY_S, lambda: enforce(monotonic()))

    def stop(self, consumer: Any) -> None:
        if self._entry is not None:
            self._entry.cancel()
            self._entry = None

    shutdown = stop
