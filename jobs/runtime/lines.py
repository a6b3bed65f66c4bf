"""Values out of a line that a tenant wrote, in bounds: whatever is of another type, too long or too large counts as absent."""

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

LONGEST = 8192
"""Characters of a line; events of the runtimes are far shorter."""
_MOST = 2**53
_TEXT = 200
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z) ")
"""In front of each line, by the kubelet, which the tenant cannot write: ``timestamps=true``."""


def without_stamp(line: str) -> tuple[str, datetime | None]:
    """The line as the process wrote it, and when the kubelet received it."""
    match = _STAMP.match(line)
    return (line[match.end() :], moment(match[1])) if match else (line, None)


def json_object(line: str) -> Mapping[str, Any]:
    """The JSON object that the whole line is; empty if it is none."""
    if len(line) > LONGEST or not line.startswith("{"):
        return {}
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def text(value: object) -> str:
    if not isinstance(value, str):
        return ""
    printable = "".join(char if char.isprintable() else " " for char in value[: 4 * _TEXT])
    words = " ".join(printable.split())
    return words if len(words) <= _TEXT else f"{words[: _TEXT - 1]}…"


def number(value: object) -> int | None:
    """A whole number that is not negative, also if it is written as a text, as ranks often are."""
    if isinstance(value, str) and re.fullmatch(r"\d{1,16}", value, re.ASCII):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        return None
    return value


def seconds(value: object) -> float | None:
    """Seconds that are not negative, also if they are written as a text, as dlrover does."""
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value, re.ASCII):
        value = float(value)
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or not 0 <= value < 1e9
    ):
        return None
    return round(float(value), 3)


def moment(value: object) -> datetime | None:
    """A time. Without a zone it is taken for UTC, which containers run in."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
