"""Lets only one process at a time run a periodic task, so that a slow run is not joined by the next ones.

A run that may take longer than its term is `kept` its turn by a thread, for a single one of its steps may take longer.
"""

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

from django.db import DatabaseError, InterfaceError, connection
from django.db.models import Q

from fleet.db import prepared
from fleet.db.prepared import TEXT, TIME
from fleet.models import Lease


@dataclass(frozen=True, slots=True)
class Turn:
    """True when the task may run."""

    name: str
    holder: str
    is_ours: bool

    def __bool__(self) -> bool:
        return self.is_ours

    def keep(self, until: datetime) -> bool:
        """Prolongs the lease; False when another process has it."""
        return bool(_KEEP.run(name=self.name, holder=self.holder, end=until))


@contextmanager
def exclusive(task: str, now: datetime, term: timedelta) -> Iterator[Turn]:
    """Whether the task may run. The lease ends with the block, or after ``term`` when the process dies inside it."""
    name, holder = f"task/{task}", secrets.token_hex(8)
    taking = {"name": name, "holder": holder, "now": now, "end": now + term, "too_far": now + 2 * term}
    is_ours = bool(_TAKE.run(**taking))
    if not is_ours and Lease.objects.get_or_create(name=name)[1]:
        is_ours = bool(_TAKE.run(**taking))
    try:
        yield Turn(name, holder, is_ours)
    finally:
        if is_ours:
            _GIVE_BACK.run(name=name, holder=holder)


@contextmanager
def kept(turn: Turn, now: datetime, term: timedelta) -> Iterator[None]:
    """Prolongs the lease again and again while the block lasts, or until another process has it."""
    ended = threading.Event()
    threading.Thread(target=_keep, args=(turn, now, term, ended), name=f"keeps {turn.name}", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _keep(turn: Turn, now: datetime, term: timedelta, ended: threading.Event) -> None:
    began = monotonic()
    while not ended.wait(term.total_seconds() / 4):
        try:
            if not turn.keep(now + timedelta(seconds=monotonic() - began) + term):
                return
        except (DatabaseError, InterfaceError):
            continue
        finally:
            connection.close()


def _taking(param: prepared.Param) -> Any:
    # An end farther away than any term is of a clock that was wrong.
    too_far = Q(expires_at__gt=param("too_far", TIME))
    free = Q(holder="") | Q(expires_at__lt=param("now", TIME)) | too_far
    rows = Lease.objects.filter(free, name=param("name", TEXT))
    return rows, {"holder": param("holder", TEXT), "expires_at": param("end", TIME)}


_TAKE = prepared.Update(_taking)
_GIVE_BACK = prepared.Update(lambda param: (_held(param), {"holder": ""}))
_KEEP = prepared.Update(lambda param: (_held(param), {"expires_at": param("end", TIME)}))


def _held(param: prepared.Param) -> Any:
    return Lease.objects.filter(name=param("name", TEXT), holder=param("holder", TEXT))
