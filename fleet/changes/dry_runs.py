"""Whether what is written now is a dry run, which is taken back: what keeps others waiting for a commit is left out of it.

A dry run is real writes in a transaction that is rolled back, so rows that it changes are locked until then as by any writer.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.db import transaction

_dry: ContextVar[bool] = ContextVar("dry_run", default=False)


@contextmanager
def taken_back() -> Iterator[None]:
    """A transaction of which nothing stays."""
    before = _dry.set(True)
    try:
        with transaction.atomic():
            yield
            transaction.set_rollback(True)
    finally:
        _dry.reset(before)


def is_running() -> bool:
    return _dry.get()
