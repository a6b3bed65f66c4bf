"""Cuts what was kept of a container's log to what a reader asks for, as a kubelet does with the log itself.

Each kept line begins with the time at which it was printed, as the members answer it with ``timestamps=true``.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO

_TIME = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d) ")


@dataclass(frozen=True, slots=True)
class Selection:
    """The query of a log, by the names that Kubernetes gives its parts."""

    tail_lines: int | None = None
    since: datetime | None = None
    timestamps: bool = False
    limit_bytes: int | None = None


def last_bytes(chunks: Iterable[bytes], most: int, give_up: int) -> tuple[bytes, bool] | None:
    """The last whole lines of at most so many bytes, and whether any are missing; None after ``give_up`` bytes in all.

    Of a last line that is longer, as a progress bar prints, its end.
    """
    kept, total = bytearray(), 0
    for chunk in chunks:
        total += len(chunk)
        if total > give_up:
            return None
        kept += chunk
        if len(kept) > 2 * most:
            del kept[:-most]
    if total <= most:
        return bytes(kept), False
    del kept[:-most]
    start = kept.find(b"\n", 0, len(kept) - 1) + 1
    return bytes(kept[start:]), True


def split(text: bytes) -> list[bytes]:
    """The lines with their ends. A carriage return, as a progress bar prints it, ends none."""
    return list(BytesIO(text))


def select(text: bytes, wanted: Selection) -> bytes:
    """The lines that are wanted, with their ends."""
    lines: Sequence[bytes] = split(text)
    if wanted.since is not None:
        lines = _since(lines, wanted.since)
    if wanted.tail_lines is not None:
        lines = lines[-wanted.tail_lines :] if wanted.tail_lines > 0 else []
    if not wanted.timestamps:
        lines = [_TIME.sub(b"", line, count=1) if _TIME.match(line) else line for line in lines]
    return b"".join(lines)[: wanted.limit_bytes]


def _since(lines: Sequence[bytes], since: datetime) -> Sequence[bytes]:
    """A line without a time belongs to the one before it."""
    for number, line in enumerate(lines):
        match = _TIME.match(line)
        if match and datetime.fromisoformat((match[1] + match[2]).decode()) >= since.replace(microsecond=0):
            return lines[number:]
    return []
