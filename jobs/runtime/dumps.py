"""Stacks of Python processes out of their logs: what `faulthandler`, ``py-spy dump`` and `convoy_runtime` print.

A tenant writes its own log: everything is bounded, and what is no stack is passed over. Several processes may write to one log;
lines with the prefix of a rank (``[rank3]:``, or ``[default3]:`` with a local rank) are those of that rank alone.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from jobs.runtime import lines
from jobs.runtime.lines import number, text

MOST_PROCESSES, MOST_THREADS, MOST_FRAMES = 64, 256, 128
"""Of one log; of one process; of one thread, the innermost."""
MOST_RANK = 2**20
_FOREIGN_LINES = 8
"""Lines of something else that may stand between the threads of one dump."""
_ONE_DUMP = timedelta(seconds=10)
_ONE_LOOK = timedelta(seconds=20)
"""Dumps of processes of one pod that were taken together; those before it are of an earlier look."""

_PREFIX = re.compile(r"\[([a-z]{1,16})(\d{1,6})\]:")
_FAULTHANDLER = re.compile(
    r"(?:Current thread|Thread) (0x[0-9a-fA-F]{1,16})(?: \[.{0,100}\])? \(most recent call first\):$"
)
_FILE = re.compile(r"\s{1,2}File \"(.{1,400})\", line (\d{1,9}|\?\?\?) in (.{1,300})$")
_SPIED_PROCESS = re.compile(r"Process (\d{1,9}): ")
_SPIED_THREAD = re.compile(r"Thread (0x[0-9a-fA-F]{1,16}|\d{1,9}) \([a-z+]{1,20}\)(?:: \".{0,100}\")?$")
_SPIED_FRAME = re.compile(r"\s{3,4}(\S.{0,299}) \(([^()]{1,400}?)(?::(\d{1,9}))?\)$")
_RUNTIME = '{"name":"convoy.stack",'
_RUNTIME_FRAME = re.compile(r"(.{1,400}) (\S{1,200})$")
_OF_RANK = re.compile(r"stacks of rank (\d{1,7})\b")


@dataclass(frozen=True, slots=True)
class Frame:
    function: str
    source: str
    """``file:line``; the file alone where the line is not known."""


Stack = tuple[Frame, ...]
"""Outermost frame first."""


@dataclass(frozen=True, slots=True)
class Dump:
    """The stacks of one process at one time."""

    stacks: tuple[Stack, ...]
    rank: int | None = None
    """Global rank, if the log names it."""
    local_rank: int | None = None
    at: datetime | None = None


@dataclass(slots=True)
class _Open:
    """A dump of which more threads may come."""

    rank: int | None
    local_rank: int | None
    process: str
    at: datetime | None
    threads: dict[str, list[Frame]] = field(default_factory=dict)
    thread: str | None = None
    foreign: int = 0

    def begins(self, thread: str, at: datetime | None) -> bool:
        """Whether a thread with this id is the first one of another dump."""
        is_later = at is not None and self.at is not None and at - self.at > _ONE_DUMP
        return thread in self.threads or self.foreign > _FOREIGN_LINES or is_later

    def closed(self) -> Dump:
        stacks = tuple(tuple(reversed(frames)) for frames in self.threads.values() if frames)
        return Dump(stacks, self.rank, self.local_rank, self.at)


@dataclass(slots=True)
class _Stream:
    """The lines of a log with one prefix."""

    rank: int | None
    local_rank: int | None
    named: int | None = None
    """The rank that a line before the dump names."""
    process: str = ""
    open: _Open | None = None
    dumps: list[Dump] = field(default_factory=list)

    def enter(self, thread: str, at: datetime | None) -> None:
        if self.open is None or self.open.begins(thread, at):
            self.close()
            rank = self.rank if self.rank is not None else self.named
            self.open = _Open(rank, self.local_rank, self.process, at)
        dump = self.open
        dump.foreign = 0
        dump.thread = thread if len(dump.threads) < MOST_THREADS else None
        if dump.thread is not None:
            dump.threads[thread] = []

    def add(self, frame: Frame) -> None:
        dump = self.open
        if dump is not None and dump.thread is not None and len(dump.threads[dump.thread]) < MOST_FRAMES:
            dump.threads[dump.thread].append(frame)

    def pass_over(self) -> None:
        if self.open is not None:
            self.open.foreign += 1

    def close(self) -> None:
        if self.open is not None and (dump := self.open.closed()).stacks:
            self.dumps.append(dump)
            del self.dumps[:-MOST_PROCESSES]
        self.open = None


def read(log: str) -> list[Dump]:
    """The dumps of the latest look at the processes of one log, one for each process, in its order."""
    streams: dict[str, _Stream] = {}
    for line in log.split("\n"):
        if len(line) > lines.LONGEST:
            continue
        written, at = lines.without_stamp(line.rstrip("\r"))
        event = lines.json_object(written) if written.startswith(_RUNTIME) else {}
        prefix = _PREFIX.match(f"[rank{number(event.get('rank'))}]:" if event else written)
        key = prefix[0] if prefix else ""
        stream = streams.get(key)
        if stream is None:
            if len(streams) >= 4 * MOST_PROCESSES:
                continue
            stream = streams[key] = _stream_of(prefix)
        if event:
            _take_stack(stream, event, at)
        else:
            _take(stream, written[len(key) :], at)
    for stream in streams.values():
        stream.close()
    return _latest(dump for stream in streams.values() for dump in stream.dumps)


def _stream_of(prefix: re.Match[str] | None) -> _Stream:
    if prefix is None:
        return _Stream(None, None)
    number = int(prefix[2])
    return _Stream(number, None) if prefix[1] == "rank" else _Stream(None, number)


def _take(stream: _Stream, line: str, at: datetime | None) -> None:
    if thread := _FAULTHANDLER.match(line.lstrip(" ")) or _SPIED_THREAD.match(line.lstrip(" ")):
        stream.enter(thread[1], at)
    elif file := _FILE.match(line):
        stream.add(_frame(file[3], file[1], file[2]))
    elif stream.open is not None and (spied := _SPIED_FRAME.match(line)):
        stream.add(_frame(spied[1], spied[2], spied[3]))
    elif process := _SPIED_PROCESS.match(line.lstrip(" ")):
        stream.close()
        stream.process = process[1]
    elif named := _OF_RANK.search(line):
        stream.close()
        stream.named = int(named[1]) if int(named[1]) < MOST_RANK else None
    elif line.strip():
        stream.pass_over()


def _take_stack(stream: _Stream, event: Mapping[str, Any], at: datetime | None) -> None:
    """One thread as `convoy_runtime` writes it; those of one dump have one number."""
    dump, part, frames = (event.get(name) for name in ("dump", "part", "frames"))
    if stream.rank is None or number(dump) is None or number(part) is None or not isinstance(frames, list):
        return
    if stream.process != str(dump):
        stream.close()
        stream.process = str(dump)
    stream.enter(str(part), at)
    for frame in frames[:MOST_FRAMES]:
        if isinstance(frame, str) and (match := _RUNTIME_FRAME.match(frame)):
            stream.add(Frame(text(match[2]), text(match[1])))


def _frame(function: str, path: str, number: str | None) -> Frame:
    has_number = bool(number) and number != "???"
    return Frame(text(function) or "??", (text(path) or "??") + (f":{number}" if has_number else ""))


def _latest(dumps: Iterable[Dump]) -> list[Dump]:
    """Of each named rank the last dump; of the others, those taken together with the last one."""
    of_rank: dict[tuple[int | None, int | None], Dump] = {}
    unnamed: list[Dump] = []
    for dump in dumps:
        if dump.rank is None and dump.local_rank is None:
            unnamed.append(dump)
        else:
            of_rank[dump.rank, dump.local_rank] = dump
    last = unnamed[-1].at if unnamed else None
    together = [dump for dump in unnamed if last and dump.at and last - dump.at <= _ONE_LOOK] or unnamed[-1:]
    return [*of_rank.values(), *together][:MOST_PROCESSES]
