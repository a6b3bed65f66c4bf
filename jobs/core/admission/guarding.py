"""Guards keep a gang whose planning raises from ending the plan of all others. Pure: what counts as contained is the caller's.

A guard runs one step for one gang. It is used where nothing is changed before the step can raise, or where the change is undone
by the step itself, so that the plan goes on as if the gang did not wait.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception that was kept from ending the plan."""

    message: str


class Guard(Protocol):
    def __call__(self, step: str, job: int, action: Callable[[], T]) -> tuple[T] | Failure:
        """What the action returns, or why it raised. ``job``: the one it is about; 0: no single one."""


def unguarded(step: str, job: int, action: Callable[[], T]) -> tuple[T] | Failure:
    """Lets every exception through."""
    return (action(),)


class Attempt(Protocol):
    def __call__(self, step: str, job: int, action: Callable[[], T]) -> tuple[T] | None:
        """What the action returns; None: it raised, and the gang is left out of the plan."""
