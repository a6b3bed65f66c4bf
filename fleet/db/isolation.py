"""Lets one object of a pass fail without ending the pass for the others.

What fails is undone, logged with its ids, counted, and left out of later passes of this process for a while that doubles with
each failure. Only a database that is away ends a pass: then nothing in it can succeed. The memory of failures is this process's
own: what it forgets is tried once too often, no more.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta
from typing import TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError, connection, models, transaction
from structlog import get_logger

from fleet import metrics

log = get_logger(__name__)

T = TypeVar("T")
R = TypeVar("R")
_FIRST = timedelta(seconds=2)
_LONGEST = timedelta(minutes=5)
_REMEMBERED = 10_000
_failures: dict[tuple[str, Hashable], tuple[int, datetime]] = {}
"""How often each object failed in a step, and until when it is left out of it."""


def run(step: str, ids: Sequence[Hashable], action: Callable[[], R]) -> tuple[R] | None:
    """What the action returns; None when it failed, which ``ids`` tell about in the log."""
    try:
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            return (action(),)
    except Exception as e:  # the one place where a failure that is not foreseen is kept from what it is not about
        if _is_database_away(e):
            raise
        metrics.ISOLATED_FAILURES.labels(step).inc()
        log.exception("isolated failure", step=step, ids=[str(each) for each in ids], error=f"{type(e).__name__}: {e}")
        return None


def whole(step: str, action: Callable[[], object], now: datetime) -> None:
    """A step of a pass that is about no object in particular."""
    each(step, [step], lambda _: action(), now)


def each(step: str, items: Iterable[T], action: Callable[[T], R], now: datetime) -> list[R]:
    """The results of the action for each item that does not fail."""
    results: list[R] = []
    for item in items:
        if _is_left_out(step, item, now):
            continue
        result = run(step, [_id(item)], lambda item=item: action(item))  # type: ignore[misc]
        _remember(step, item, failed=result is None, now=now)
        results += result or ()
    return results


def together(step: str, items: Sequence[T], action: Callable[[Sequence[T]], R], now: datetime) -> list[R]:
    """The results for all items at once; a batch that fails is taken apart, down to the items it fails for."""
    return _halved(step, [item for item in items if not _is_left_out(step, item, now)], action, now)


def _halved(step: str, items: Sequence[T], action: Callable[[Sequence[T]], R], now: datetime) -> list[R]:
    if not items:
        return []
    result = run(step, [_id(item) for item in items], lambda: action(items))
    if result is not None or len(items) == 1:
        for item in items:
            _remember(step, item, failed=result is None, now=now)
        return list(result or ())
    half = len(items) // 2
    return _halved(step, items[:half], action, now) + _halved(step, items[half:], action, now)


def _is_database_away(error: Exception) -> bool:
    """Some errors of a sound connection have the same type: of a row that is too large for an index, for example."""
    if isinstance(error, InterfaceError):
        return True
    return isinstance(error, OperationalError) and (connection.connection is None or not _is_usable())


def _is_usable() -> bool:
    try:
        return connection.is_usable()
    except DatabaseError:
        return False


def _is_left_out(step: str, item: object, now: datetime) -> bool:
    """A time beyond any wait is of a clock that was wrong."""
    _, until = _failures.get((step, _id(item)), (0, now))
    return now < until <= now + _LONGEST


def _remember(step: str, item: object, *, failed: bool, now: datetime) -> None:
    key = (step, _id(item))
    if not failed:
        _failures.pop(key, None)
        return
    count = _failures.get(key, (0, now))[0] + 1
    if len(_failures) >= _REMEMBERED:
        _failures.pop(next(iter(_failures)), None)
    _failures[key] = (count, now + min(_LONGEST, _FIRST * 2 ** min(count - 1, 10)))


def _id(item: object) -> Hashable:
    if isinstance(item, models.Model):
        return f"{item._meta.model_name} {item.pk}"
    return item if isinstance(item, Hashable) else repr(item)
