"""Makes every write of a thread conditional on a check that runs in the write's own transaction.

For writers that hold a lease: the check locks the lease's row against being taken over until the transaction ends, so that a
writer that was paused and has lost its lease cannot write. It need not know which services write on its behalf, nor where their
transactions begin.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

from django.db import connection, transaction

Check = Callable[[], None]
"""Raises when nothing may be written any more; else keeps it so until the transaction ends."""
_READS = ("SELECT", "SAVEPOINT", "RELEASE", "ROLLBACK", "BEGIN", "SET", "SHOW", "PRAGMA")
_active = threading.local()


@contextmanager
def fenced(check: Check) -> Iterator[None]:
    """Within the block, ``check`` runs before each statement of this thread that writes, in the same transaction."""
    _active.check = check
    try:
        with connection.execute_wrapper(partial(_checked, check)):
            yield
    finally:
        _active.check = None


@contextmanager
def lifted() -> Iterator[None]:
    """Within the block nothing is checked. For what has to follow a write that was checked and is committed."""
    check: Check | None = getattr(_active, "check", None)
    _active.check = None
    try:
        yield
    finally:
        _active.check = check


def verify() -> None:
    """For writes that are no statement (COPY): call it inside their transaction."""
    check: Check | None = getattr(_active, "check", None)
    if check is not None:
        check()


def _checked(check: Check, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
    if getattr(_active, "check", None) is not check or sql.lstrip().upper().startswith(_READS):
        return execute(sql, params, many, context)
    with nullcontext() if connection.in_atomic_block else transaction.atomic():
        check()
        return execute(sql, params, many, context)
