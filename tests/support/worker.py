"""A Celery worker in threads of the test process, which rests while nobody wants its work.

It rests by finding its queue empty: the connection, the pool and the threads stay.
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

ENDS_S = 20.0
take = filebroker.Channel._get


class Worker:
    def __init__(self) -> None:
        self._working = threading.Event()

    @classmethod
    @contextmanager
    def started(cls) -> Iterator["Worker"]:
        made = cls()
        if settings.REDIS_URL:
            yield made
            return
        filebroker.Channel._get = made._take  # type: ignore[method-assign]
        try:
            with _threads():
                yield made
        finally:
            filebroker.Channel._get = take  # type: ignore[method-assign]

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Ends when what it has begun has ended. With a server as broker it is another worker each time."""
        if settings.REDIS_URL:
            with _threads():
                yield
            return
        self._working.set()
        try:
            yield
        finally:
            self._working.clear()
            _await_end()

    @property
    def _take(self) -> Any:
        def gated(channel: filebroker.Channel, queue: str, timeout: float | None = None) -> Any:
            if not self._working.is_set():
                raise Empty
            return take(channel, queue, timeout)

        return gated


def _threads() -> Any:
    return start_worker(app, pool="threads", concurrency=4, perform_ping_check=False, shutdown_timeout=ENDS_S)


def _await_end() -> None:
    deadline = time.monotonic() + ENDS_S
    while state.reserved_requests:
        assert time.monotonic() < deadline, f"tasks that do not end: {list(state.reserved_requests)}"
        time.sleep(0.01)
