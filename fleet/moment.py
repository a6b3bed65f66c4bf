"""Reads several things as they were at one moment; it knows nothing of what is read.

By itself every query sees what was committed until it began, so that what is read first may be older than what is read next:
a hold that stands still, of a job that has ended already.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

_BEGIN = {"postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "sqlite": "BEGIN DEFERRED"}


@contextmanager
def one_moment() -> Iterator[None]:
    """For reading only. Inside a transaction it is that which says what is seen."""
    if connection.in_atomic_block:
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute(_BEGIN[connection.vendor])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ROLLBACK")
