"""A process that breaks at a chosen call."""

from collections.abc import Callable, Iterator
from datetime import datetime

from django.utils import timezone


class Broken(Exception):
    pass


def breaks_at(reading: int) -> Callable[[], datetime]:
    """A clock that breaks when it is read for the n-th time, and only then."""

    def readings() -> Iterator[bool]:
        count = 0
        while True:
            count += 1
            yield count == reading

    is_broken = readings()

    def clock() -> datetime:
        if next(is_broken):
            raise Broken
        return timezone.now()

    return clock
