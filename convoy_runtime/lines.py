"""Lines of the job's log that Convoy reads: one JSON object each, short enough to reach the log in one piece."""

from __future__ import annotations

import json
import operator
import os
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

LONGEST = 4000
"""Bytes of a line: a pipe takes up to 4,096 without mixing them with those of another process."""
PREFIX = "convoy."


def emit(name: str, at: float, **fields: Any) -> None:
    """Writes the event ``convoy.NAME``. ``at`` is in seconds since the epoch; fields that are None are left out."""
    line = text(name, at, **fields).encode()
    try:
        sys.stdout.flush()
        os.write(1, line + b"\n")
    except (OSError, ValueError):  # the log is closed: nothing can be said any more
        return


def text(name: str, at: float, **fields: Any) -> str:
    known: dict[str, Any] = {"name": PREFIX + name, "at": _stamp(at), "rank": rank(), "world_size": world_size()}
    known.update({field: value for field, value in fields.items() if value is not None})
    return json.dumps(known, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    """A number of numpy or torch as Python's own."""
    numbers: tuple[Callable[[Any], Any], ...] = (operator.index, float)
    for number in numbers:
        try:
            return number(value)
        except (RuntimeError, TypeError, ValueError):
            continue
    return str(value)


def rank() -> int:
    """The rank of this process among all of the job; 0 where nothing says so."""
    return _number("RANK", 0)


def world_size() -> int:
    return _number("WORLD_SIZE", 1)


def _number(name: str, otherwise: int) -> int:
    value = os.environ.get(name, "")
    return int(value) if value.isdigit() else otherwise


def _stamp(at: float) -> str:
    moment = datetime.fromtimestamp(at, timezone.utc)  # noqa: UP017 - also for Python 3.9
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
