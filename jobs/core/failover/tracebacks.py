"""Finds Python's tracebacks in the log of a training process: what was raised, in which line, and on which rank.

Logs are written by tenants, and several ranks often write to one. Lines are cut, prefixes of ranks are taken off, and lines of
other processes between those of a traceback are passed over. The time that this takes grows with the length of the log only.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

LONGEST_LINE = 2000
"""Characters of a line that are looked at."""
_EXCERPT_LINES, _EXCERPT_CHARS = 12, 200
_FOREIGN_LINES = 8
"""Lines of other processes that may stand between the frames of a traceback and its exception."""
_ESCAPES = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_RANK = re.compile(r"\[([a-z]{1,16})(\d{1,6})\]:\s?")
"""``[rank3]:`` is torch's prefix, ``[default3]:`` that of torchrun's ``--tee`` with a local rank."""
_BEGIN = "Traceback (most recent call last):"
_FRAME = re.compile(r'File "([^"]{1,300})", line (\d{1,9}), in (\S{1,100})')
_RAISED = re.compile(r"([A-Za-z_][\w.]{0,200})(?::\s(.*)|:)?$")


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception that ended a program, or that it logged."""

    name: str
    """With its module, as Python prints it."""
    message: str
    rank: int | None
    position: int
    """Number of the line where the traceback begins."""
    excerpt: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.message}" if self.message else self.name


def clean(text: str) -> list[str]:
    """The lines of a log without colours and control characters; of a progress bar that overwrites itself, its last state."""
    return [_clean(line) for line in text.split("\n")]


def _clean(line: str) -> str:
    visible = _ESCAPES.sub("", line[: 2 * LONGEST_LINE].rstrip("\r").rpartition("\r")[2])
    cut = visible[:LONGEST_LINE]
    return (cut if cut.isprintable() else "".join(char if char.isprintable() else " " for char in cut)).rstrip()


def excerpt_of(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines as they are shown: the last ones, each of them cut."""
    return tuple(
        line if len(line) <= _EXCERPT_CHARS else f"{line[: _EXCERPT_CHARS - 1]}…" for line in lines[-_EXCERPT_LINES:]
    )


def without_prefix(line: str) -> tuple[str, int | None]:
    """The line without the prefix of its rank, and the rank if torch has named it."""
    match = _RANK.match(line)
    if match is None:
        return line, None
    return line[match.end() :], int(match[2]) if match[1] == "rank" else None


@dataclass(slots=True)
class _Open:
    """A traceback whose exception has not come yet."""

    position: int
    rank: int | None
    lines: list[str] = field(default_factory=list)
    foreign: int = 0


def find(lines: Sequence[str]) -> Iterator[Raised]:
    """Every complete traceback, in the order of their ends. Of a chain of exceptions, the first is the one raised first."""
    pending: dict[str, _Open] = {}
    for position, line in enumerate(lines):
        text, rank = without_prefix(line)
        source = line[: len(line) - len(text)]
        if text.lstrip().endswith(_BEGIN):
            pending[source] = _Open(position, rank)
            if len(pending) > _MOST_OPEN:
                del pending[next(iter(pending))]
        elif source in pending and (raised := _continue(pending[source], text)):
            del pending[source]
            yield raised


_MOST_OPEN = 64
"""Tracebacks of different ranks that may be open at a time."""


def _continue(traceback: _Open, text: str) -> Raised | None:
    """Adds a line to the traceback; returns the exception if the line names it."""
    if text.startswith((" ", "\t")) or not text:
        traceback.lines.append(text.strip())
        del traceback.lines[: -2 * _EXCERPT_LINES]
        return None
    match = _RAISED.match(text)
    if match is None or not _is_exception(match[1]):
        traceback.foreign += 1
        return None
    if traceback.foreign > _FOREIGN_LINES:
        return None
    frames = [line for line in traceback.lines if line]
    return Raised(match[1], (match[2] or "").strip(), traceback.rank, traceback.position, excerpt_of([*frames, text]))


def _is_exception(name: str) -> bool:
    last = name.rpartition(".")[2]
    return last[:1].isupper() and not last.isupper()


def frame_of(excerpt: Sequence[str]) -> str:
    """Where it was raised, for example ``train.py:88 in step``. Empty if the excerpt has no frame."""
    for line in reversed(excerpt):
        if match := _FRAME.search(line):
            return f"{match[1].rpartition('/')[2]}:{match[2]} in {match[3]}"
    return ""
