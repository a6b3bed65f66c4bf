"""Lets one object of a pass fail without ending the pass for the others.

What fails is undone, logged with its ids, counted, and left out of later passes of this process for a while that doubles with
each failure. Only a database that is away ends a pass: then nothing in it can succeed. The memory of failures is this process's
own: what it forgets is tried once too often, no more.

- `each`: objects that are handled one by one.
- `together`: objects that are handled in one transaction; a batch that fails is taken apart, down to those it fails for.
- `run`: whatever else must not end its caller; without a memory, as are `apart` and the steps of a pass.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
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


class Ends(Exception):  # noqa: N818 - the base of exceptions that are no errors
    """Ends a pass on purpose: the process must not go on with it."""


def _id(item: object) -> Hashable:
    if isinstance(item, models.Model):
        return f"{item._meta.model_name} {item.pk}"
    return item if isinstance(item, Hashable) else repr(item)


def run(step: str, ids: Sequence[Hashable], action: Callable[[], R], *, savepoint: bool = True) -> tuple[R] | None:
    """What the action returns; None when it failed, which is logged with ``ids``.

    Without a ``savepoint`` the action writes nothing, or undoes by itself what it wrote.
    """
    return attempt(step, ids, action, savepoint=savepoint)[0]


def attempt(
    step: str, ids: Sequence[Hashable], action: Callable[[], R], *, savepoint: bool = True
) -> tuple[tuple[R] | None, Exception | None]:
    """As `run`, with what was raised."""
    result, error = _try(action, savepoint)
    if error is not None:
        _report(step, ids, error)
    return result, error


def _try(action: Callable[[], R], savepoint: bool) -> tuple[tuple[R] | None, Exception | None]:
    try:
        if savepoint and connection.in_atomic_block:
            with transaction.atomic():
                return (action(),), None
        return (action(),), None
    except Exception as e:  # the one place where a failure that is not foreseen is kept from what it is not about
        if not is_contained(e):
            raise
        return None, e


def _report(step: str, ids: Sequence[Hashable], error: Exception) -> None:
    metrics.ISOLATED_FAILURES.labels(step).inc()
    shown = f"{type(error).__name__}: {error}"
    log.error("isolated failure", step=step, ids=[str(each) for each in ids], error=shown, exc_info=error)


def each(step: str, items: Iterable[T], action: Callable[[T], R], now: datetime, *, savepoint: bool = True) -> list[R]:
    """The results of the action for each item that does not fail."""
    results: list[R] = []
    for item in items:
        if _is_left_out(step, item, now):
            continue
        result = run(step, [_id(item)], lambda item=item: action(item), savepoint=savepoint)  # type: ignore[misc]
        _remember(step, item, failed=result is None, now=now)
        results += result or ()
    return results


def together(step: str, items: Sequence[T], action: Callable[[Sequence[T]], R], now: datetime) -> list[R]:
    """The results of the parts of the batch that could be handled at once: of one part when nothing fails."""

    def settle(item: T, error: Exception | None) -> None:
        _remember(step, item, failed=error is not None, now=now)

    return apart(step, [item for item in items if not _is_left_out(step, item, now)], action, settle)


def apart(
    step: str,
    items: Sequence[T],
    action: Callable[[Sequence[T]], R],
    settle: Callable[[T, Exception | None], None] = lambda _item, _error: None,
    *,
    id_of: Callable[[T], Hashable] = _id,
    savepoint: bool = True,
) -> list[R]:
    """The results of the parts of the batch; what fails in a part of one item is left out of them.

    ``settle`` is called for each item once it is known whether it fails. Nothing is remembered of it here: it may have
    changed the next time.
    """
    if not items:
        return []
    result, error = _try(lambda: action(items), savepoint)
    if error is not None and len(items) > 1:
        halves = items[: len(items) // 2], items[len(items) // 2 :]
        return [one for half in halves for one in apart(step, half, action, settle, id_of=id_of, savepoint=savepoint)]
    if error is not None:
        _report(step, [id_of(items[0])], error)
    for item in items:
        settle(item, error)
    return list(result or ())


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
