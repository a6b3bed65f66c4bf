"""The time that a report covers: its bounds, its length, and how much of it is counted for one answer."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import TypeVar

from fleet.errors import invalid

T = TypeVar("T")


def check(begin: datetime, end: datetime, longest: timedelta) -> None:
    """Raises `InvalidInput` for a time that ends before it begins, or is longer than the report covers."""
    if begin >= end:
        raise invalid("from", "must be before to")
    if end - begin > longest:
        raise invalid("from", f"must be at most {longest.days} days before to")


def bounded(items: Iterable[T], most: int, name: str) -> Iterator[T]:
    """The items; raises `InvalidInput` where there are more than one answer counts."""
    for count, item in enumerate(items):
        if count == most:
            raise invalid("from", f"has more than {most} {name} until to: choose a later from")
        yield item


def milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1000)
