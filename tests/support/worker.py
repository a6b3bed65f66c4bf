"""A Celery worker in threads of the test process, which rests while nobody wants its work.

It rests by finding its queue empty, or by consuming from none: the connection, the pool and the threads stay.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty
from typing import Any

from celery.contrib.testing.worker import start_worker
from celery.worker import state
from django.conf import settings

from deploy.config import filebroker
from deploy.config.celery import app

ENDS_S = 60.0
LOOK_S = 0.5
"""While it rests it looks this often whether it has to end: to look for messages takes processor time from other tests."""
take = filebroker.Channel._get


class Worker:
    def __init__(self) -> None:
        self._working = threading.Event()
        self._between_messages = threading.Event()
        self._controller: Any = None

    @classmethod
    @contextmanager
    def started(cls) -> Iterator["Worker"]:
        made = cls()
        if not settings.REDIS_URL:
            filebroker.Channel._get = made._take  # type: ignore[method-assign]
        try:
            with _threads() as made._controller:
                if settings.REDIS_URL:
                    made._consume(on=False)
                yield made
        finally:
            filebroker.Channel._get = take  # type: ignore[method-assign]

    def learn(self, task: Any) -> None:
        """Carries out this task too, which was defined after the worker had started."""
        self._controller.consumer.update_strategies()
        assert task.name in self._controller.consumer.strategies

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Ends when what it has begun has ended."""
        app.control.purge()
        self._rest(on=False)
        try:
            yield
        finally:
            self._rest(on=True)
            settle()

    def _rest(self, *, on: bool) -> None:
        if settings.REDIS_URL:
            self._consume(on=not on)
        elif on:
            self._working.clear()
            assert self._between_messages.wait(ENDS_S), "the worker does not come back for the next message"
        else:
            self._working.set()

    def _consume(self, *, on: bool) -> None:
        """From all its queues or none; a server as broker hands messages out by itself. Its thread alone may change that."""
        changed, consumer = threading.Event(), self._controller.consumer

        def change() -> None:
            for queue in settings.CELERY_TASK_QUEUES:
                (consumer.add_task_queue if on else consumer.cancel_task_queue)(queue.name)
            changed.set()

        consumer.call_soon(change)
        assert changed.wait(ENDS_S), "the worker takes no orders"

    @property
    def _take(self) -> Any:
        def gated(channel: filebroker.Channel, queue: str, timeout: float | None = None) -> Any:
            self._between_messages.set()
            if not self._working.wait(LOOK_S):
                raise Empty
            self._between_messages.clear()
            if not self._working.is_set():  # it was told to rest before the line above
                raise Empty
            return take(channel, queue, timeout)

        return gated


def _threads() -> Any:
    return start_worker(app, pool="threads", concurrency=4, perform_ping_check=False, shutdown_timeout=ENDS_S)


def settle() -> None:
    """Throws away what waits to be done, now or at a later time, and returns when nothing is done any more."""
    deadline = time.monotonic() + ENDS_S
    while True:
        app.control.purge()
        # They wait in the worker itself, up to half a minute. Revoked, each ends unexecuted when its time comes.
        state.revoked.update(list(state.requests))
        if not state.reserved_requests:
            return
        assert time.monotonic() < deadline, f"tasks that do not end: {list(state.reserved_requests)}"
        time.sleep(0.01)
