"""Lets only one process at a time run a periodic task, so that a slow run is not joined by the next ones."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db.models import Q

from fleet.models import Lease


@contextmanager
def exclusive(task: str, now: datetime, term: timedelta) -> Iterator[bool]:
    """Whether the task may run. The lease ends with the block, or after ``term`` when the process dies inside it."""
    name, holder = f"task/{task}", secrets.token_hex(8)
    # An end farther away than any term is of a clock that was wrong.
    takeable = Q(holder="") | Q(expires_at__lt=now) | Q(expires_at__gt=now + 2 * term)
    free = Lease.objects.filter(takeable, name=name)
    end = {"holder": holder, "expires_at": now + term}
    is_ours = bool(free.update(**end))
    if not is_ours and Lease.objects.get_or_create(name=name)[1]:
        is_ours = bool(free.update(**end))
    try:
        yield is_ours
    finally:
        if is_ours:
            Lease.objects.filter(name=name, holder=holder).update(holder="")
