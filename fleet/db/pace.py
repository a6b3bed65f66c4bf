"""Ends a batch after some seconds, however slow the machine is: what is left is taken by the next pass."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, items: Iterable[T], monotonic: Callable[[], float] = time.monotonic) -> Iterator[T]:
    """The items until the time is over, and at least one."""
    began = monotonic()
    for item in items:
        yield item
        if monotonic() - began >= seconds:
            return
