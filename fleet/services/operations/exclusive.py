"""Lets only one process at a time run a periodic task, so that a slow run is not joined by the next ones.

A run that takes longer than its term keeps its turn by saying that it goes on.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

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
