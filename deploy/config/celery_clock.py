"""When a task that was not taken in time is dropped: judged by the clock that its sender and its worker share.

Celery compares the sender's clock with the worker's: a worker whose clock is ahead by more than the few seconds that periodic
tasks may wait would drop every one of them.
"""

from datetime import UTC, datetime
from typing import Any

from celery import Celery, Task
from celery.worker.request import Request
from celery.worker.state import revoked
from django.db import InterfaceError, OperationalError

from fleet.db import clock, connections


def now() -> datetime | None:
    """None: the database does not answer."""
    try:
        moment = clock.now()
        connections.give_back()
    except (OperationalError, InterfaceError):
        return None
    return moment


class ClockApp(Celery):
    def now(self) -> datetime:
        """What a sender counts from."""
        return (now() or datetime.now(UTC)).astimezone(self.timezone)


class ClockRequest(Request):
    """A message as a worker takes it."""

    def maybe_expire(self) -> Any:
        """While the database does not answer nothing expires: what is done then fails, and is found by the sweeps."""
        moment = now() if self.expires else None
        if moment is not None and moment > self.expires:
            revoked.add(self.id)
            return True
        return None


class ClockTask(Task):  # type: ignore[type-arg]
    Request = "deploy.config.celery_clock:ClockRequest"
