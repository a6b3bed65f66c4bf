"""Gangs whose planning raised: kept from ending the cycle of the others, and their jobs say why they are left out."""

from collections.abc import Callable
from typing import TypeVar

from fleet.db import isolation
from jobs.core.admission.guarding import Failure

T = TypeVar("T")
_TEXT = 300


def guard(step: str, job: int, action: Callable[[], T]) -> tuple[T] | Failure:
    """The `jobs.core.admission.guarding.Guard` of cycles and previews: logs and counts what is raised."""
    result, error = isolation.attempt(f"scheduler.{step}", [f"job {job}"] if job else [], action, savepoint=False)
    return Failure(words(error)) if result is None else result


def words(error: Exception | None) -> str:
    """The exception in one line that the database stores."""
    text = f"{type(error).__name__}: {error}".replace("\0", "")
    return " ".join(text.split())[:_TEXT]
