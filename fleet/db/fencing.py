"""Makes every write of a thread conditional on a check that runs in the write's own transaction.

For writers that hold a lease: the check locks the lease's row against being taken over until the transaction ends, so that a
writer that was paused and has lost its lease cannot write. It need not know which services write on its behalf, nor where their
transactions begin. One check serves a transaction, because its lock lasts as long: to its end, or until the savepoint is
undone below which it was taken.
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
_LONGEST = max(map(len, _READS))
_active = threading.local()


@contextmanager
def fenced(check: Check) -> Iterator[None]:
    """Within the block, ``check`` runs before the first write of each transaction of this thread, and in that transaction."""
    once = partial(_check_once, check, partial(bool))
    _active.check = once
    try:
        with connection.execute_wrapper(partial(_checked, once)):
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
    if getattr(_active, "check", None) is not check or sql.lstrip()[:_LONGEST].upper().startswith(_READS):
        return execute(sql, params, many, context)
    with nullcontext() if connection.in_atomic_block else transaction.atomic():
        check()
        return execute(sql, params, many, context)


def _check_once(check: Check, has_passed: Callable[[], object]) -> None:
    """Checks unless this transaction has passed. ``has_passed`` does nothing: it is among the hooks of the commit as long as
    the check holds, since Django drops it with the transaction, and with the savepoint below which it was added.
    """
    if all(hook[1] is not has_passed for hook in connection.run_on_commit):
        check()
        transaction.on_commit(has_passed)
