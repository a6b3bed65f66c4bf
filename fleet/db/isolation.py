"""Lets one object of a pass fail without ending the pass for the others.

What fails is undone, logged with its ids, counted, and left out of later passes of this process for a while that doubles with
each failure. Only a database that is away ends a pass: then nothing in it can succeed. The memory of failures is this process's
own: what it forgets is tried once too often, no more.

- `each`: objects that are handled one by one.
- `together`: objects that are handled in one transaction; a batch that fails is taken apart, down to those it fails for.
- `run`: whatever else must not end its caller; without a memory, as are `apart` and the steps of a pass.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

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


class Ends(Exception):  # noqa: N818 - the base of exceptions that are no errors
    """Ends a pass on purpose: the process must not go on with it."""


def run(step: str, ids: Sequence[Hashable], action: Callable[[], R], *, is_pure: bool = False) -> tuple[R] | None:
    """What the action returns; None when it failed, which the log tells with ``ids``. A pure one needs no savepoint."""
    try:
        with transaction.atomic() if connection.in_atomic_block and not is_pure else nullcontext():
            return (action(),)
    except Exception as e:  # the one place where a failure that is not foreseen is kept from what it is not about
        if not is_contained(e):
            raise
        metrics.ISOLATED_FAILURES.labels(step).inc()
        log.exception("isolated failure", step=step, ids=[str(each) for each in ids], error=f"{type(e).__name__}: {e}")
        return None


def each(step: str, items: Iterable[T], action: Callable[[T], R], now: datetime, *, is_pure: bool = False) -> list[R]:
    """The results of the action for each item that does not fail."""
    results: list[R] = []
    for item in items:
        if _is_left_out(step, item, now):
            continue
        result = run(step, [_id(item)], lambda item=item: action(item), is_pure=is_pure)  # type: ignore[misc]
        _remember(step, item, failed=result is None, now=now)
        results += result or ()
    return results


def together(step: str, items: Sequence[T], action: Callable[[Sequence[T]], R], now: datetime) -> list[R]:
    """The results of the parts of the batch that could be handled at once: of one part when nothing fails."""

    def settle(item: T, *, failed: bool) -> None:
        _remember(step, item, failed=failed, now=now)

    return apart(step, [item for item in items if not _is_left_out(step, item, now)], action, settle)


class Settle(Protocol):
    """Called for each item of a batch once it is known whether it fails."""

    def __call__(self, item: Any, *, failed: bool) -> None: ...


def _forget(item: Any, *, failed: bool) -> None:
    """For what is not left out the next time: it may have changed meanwhile."""


def apart(step: str, items: Sequence[T], action: Callable[[Sequence[T]], R], settle: Settle = _forget) -> list[R]:
    """The results of the parts of the batch; what fails in a part of one item is left out of them."""
    if not items:
        return []
    result = run(step, [_id(item) for item in items], lambda: action(items))
    if result is not None or len(items) == 1:
        for item in items:
            settle(item, failed=result is None)
        return list(result or ())
    half = len(items) // 2
    return apart(step, items[:half], action, settle) + apart(step, items[half:], action, settle)


def is_contained(error: Exception) -> bool:
    """Whether a failure says nothing about what else is to be done.

    Some errors of a sound connection have the type of one that is lost: of a row that is too large for an index, for example.
    """
    if isinstance(error, (Ends, InterfaceError)):
        return False
    return not isinstance(error, OperationalError) or (connection.connection is not None and _is_usable())


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
