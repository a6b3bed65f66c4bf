"""Lets several queries read one snapshot of the database.

By itself every query sees what was committed before it began, so that what is read first may be older than what is read next: a
hold that is still open, of a job that has ended already. The version up to which the journal is settled is asked for before the
snapshot is taken: a snapshot taken earlier would lack the entries of a writer that ends in between.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from fleet.changes import journal

_BEGIN = {"postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "sqlite": "BEGIN DEFERRED"}


@contextmanager
def repeatable_read(writers_s: float = 0.0) -> Iterator[None]:
    """For reading only. Inside a transaction it does nothing: there the transaction determines what is seen.

    Waits up to ``writers_s`` seconds for journal entries that are being written.
    """
    if connection.in_atomic_block:
        yield
        return
    with journal.read_until(journal.settled(writers_s)), _snapshot():
        yield


@contextmanager
def _snapshot() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(_BEGIN[connection.vendor])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ROLLBACK")
