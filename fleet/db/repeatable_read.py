"""Reads several things as they were at one moment.

By itself every query sees what was committed until it began, so that what is read first may be older than what is read next:
a hold that stands still, of a job that has ended already. Up to where the journal is settled is asked before the moment: of a
writer that ends in between, the moment would lack the entries.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from fleet import journal

_BEGIN = {"postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "sqlite": "BEGIN DEFERRED"}


@contextmanager
def one_moment(writers_s: float = 0.0) -> Iterator[None]:
    """For reading only. Inside a transaction it is that which says what is seen.

    The moment comes so many seconds later at the most, if journal entries are being written.
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
