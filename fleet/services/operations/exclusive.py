"""Lets only one process at a time run a periodic task, so that a slow run is not joined by the next ones."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from fleet.db import prepared
from fleet.db.prepared import TEXT, TIME
from fleet.models import Lease


@contextmanager
def exclusive(task: str, now: datetime, term: timedelta) -> Iterator[bool]:
    """Whether the task may run. The lease ends with the block, or after ``term`` when the process dies inside it."""
    name, holder = f"task/{task}", secrets.token_hex(8)
    taking = {"name": name, "holder": holder, "now": now, "end": now + term, "too_far": now + 2 * term}
    is_ours = bool(_TAKE.run(**taking))
    if not is_ours and Lease.objects.get_or_create(name=name)[1]:
        is_ours = bool(_TAKE.run(**taking))
    try:
        yield is_ours
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
_GIVE_BACK = prepared.Update(
    lambda param: (Lease.objects.filter(name=param("name", TEXT), holder=param("holder", TEXT)), {"holder": ""})
)
