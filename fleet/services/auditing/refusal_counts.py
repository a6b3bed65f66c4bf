"""Counts refused attempts that are too many to be written singly: one audit line a minute for those of one sort.

Attempts are counted in this process and written every few seconds by a thread of its own, so that no request waits for the
database and a flood costs one row. A line is complete, and linked into the chain, once its minute is over; a process that dies
loses the attempts of its last seconds and no line.
"""

import atexit
import logging
import threading
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import DatabaseError
from django.utils import timezone

from fleet.db import connections
from fleet.models import AuditEntry

log = logging.getLogger(__name__)

SORTS = 1000
"""Lines of one minute; attempts of further sorts are counted together."""
OTHERS = "(others)"
_WRITE_EVERY_S = 2.0


@dataclass(frozen=True, slots=True)
class Sort:
    """What attempts that share a line have in common."""

    door: str
    verb: str
    kind: str
    name: str
    attempts: str
    """What they are called, one and many, separated by a slash."""
    refused: str
    """The end of the sentence about them."""
    actor: str = ""
    address: str = ""

    def beyond(self) -> "Sort":
        return replace(self, actor=self.actor and OTHERS, address=self.address and OTHERS)

    def message(self, count: int) -> str:
        one, _, many = self.attempts.partition("/")
        return f"{count} {one if count == 1 else many} within this minute {self.refused}"

    def line(self, minute: datetime) -> AuditEntry:
        about = {"door": self.door, "verb": self.verb, "kind": self.kind, "name": self.name}
        outcome = AuditEntry.Outcome.REFUSED
        return AuditEntry(at=minute, actor=self.actor, address=self.address, outcome=outcome, **about)


_Key = tuple[datetime, Sort]


@dataclass(slots=True)
class _Attempts:
    count: int = 0
    written: int = 0
    line: AuditEntry | None = None


class RefusalCounts:
    def __init__(self, sorts: int = SORTS) -> None:
        self._sorts = sorts
        self._attempts: dict[_Key, _Attempts] = {}
        self._lock = threading.Lock()

    def count(self, sort: Sort, now: datetime) -> None:
        """Touches no database; from any thread."""
        minute = now.replace(second=0, microsecond=0)
        with self._lock:
            key = minute, sort
            if key not in self._attempts and self._is_full(minute):
                key = minute, sort.beyond()
            self._attempts.setdefault(key, _Attempts()).count += 1

    def _is_full(self, minute: datetime) -> bool:
        """Lines of former minutes are open until they are written, which takes as long as the database is away."""
        if len(self._attempts) >= 2 * self._sorts:
            return True
        return sum(known[0] == minute for known in self._attempts) >= self._sorts

    @property
    def is_open(self) -> bool:
        """Whether anything is left to be written."""
        return bool(self._attempts)

    def write(self, now: datetime, *, last: bool = False) -> None:
        """Writes what was counted since; with ``last`` all lines are complete. One thread at a time."""
        with self._lock:
            attempts = dict(self._attempts)
        for key, known in attempts.items():
            self._write_line(key, known, is_over=last or (now - key[0]).total_seconds() >= 60)

    def _write_line(self, key: _Key, known: _Attempts, *, is_over: bool) -> None:
        minute, sort = key
        count = known.count
        if known.line is None:
            line = sort.line(minute)
            line.message, line.complete = sort.message(count), is_over
            line.save(force_insert=True)
            known.line = line
        elif is_over or count > known.written:
            rows = AuditEntry.objects.filter(pk=known.line.pk, seq=None)
            rows.update(message=sort.message(count), complete=is_over)
        known.written = count
        if not is_over:
            return
        with self._lock:
            # Counted between the write and now, for a minute that is over: on its next line.
            left = known.count - count
            self._attempts.pop(key, None)
            if left:
                self._attempts[key] = _Attempts(left)


class Writer:
    """The thread of a process; it starts with the first attempt and ends when no line is open."""

    def __init__(self) -> None:
        self.refused = RefusalCounts()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._stop = threading.Event()

    def count(self, sort: Sort) -> None:
        self.refused.count(sort, timezone.now())
        with self._starting:
            if self._thread is None:
                self._thread = self.start()

    def start(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, name="refusals", daemon=True)
        thread.start()
        atexit.register(self.stop)
        return thread

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_WRITE_EVERY_S)

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._stop.wait(_WRITE_EVERY_S)
            self._write(last=is_last)
            with self._starting:
                # Asked under the lock: an attempt that was counted since would have no thread.
                if not self.refused.is_open:
                    self._thread = None
                    atexit.unregister(self.stop)
                    return

    def _write(self, *, last: bool) -> None:
        try:
            self.refused.write(timezone.now(), last=last)
        except DatabaseError as e:
            log.warning("counts of refusals are written when the database answers again: %s", e)
        finally:
            connections.give_back()


_of_this_process = Writer()
count = _of_this_process.count
