"""Counts refused sign-ins that are too many to be written singly: one audit line for each address and minute, with the number.

Attempts are counted in this process and written every few seconds by a thread of its own, so that no request waits for the
database and a spray costs one row. A line is complete, and linked into the chain, once its minute is over; a process that dies
loses the attempts of its last seconds and no line.
"""

import atexit
import logging
import threading
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from django.db import DatabaseError
from django.utils import timezone

from fleet.db import connections
from fleet.models import AuditEntry
from fleet.services.auditing import audit

log = logging.getLogger(__name__)

ADDRESSES = 1000
"""Lines of one minute; attempts from further addresses are counted together."""
OTHERS = "(others)"
UNKNOWN = "(unknown)"
_WRITE_EVERY_S = 2.0


class Refusal(Enum):
    """(door, verb, kind, what was refused)"""

    PASSWORDS = ("console", "sign-in", "User", "beyond the limit of attempts to sign in, passwords not looked at")
    OIDC = ("console", "sign-in", "User", "to come back from the company's sign-in that were not believed")
    CODES = ("rest", "sign-in", "User", "with codes of the command line that are unknown, used or expired")
    TOKENS_AT_REST = ("rest", "use", "Token", "with tokens that are unknown, expired or revoked")
    TOKENS_AT_SOCKETS = ("websocket", "use", "Token", "with tokens that are unknown, expired or revoked")
    TOKENS_AT_KUBE = ("kubectl", "use", "Token", "with tokens that are unknown, expired or revoked")


_Key = tuple[datetime, str, Refusal]


@dataclass(slots=True)
class _Attempts:
    count: int = 0
    written: int = 0
    line: AuditEntry | None = None


class RefusedSignIns:
    def __init__(self, addresses: int = ADDRESSES) -> None:
        self._addresses = addresses
        self._attempts: dict[_Key, _Attempts] = {}
        self._lock = threading.Lock()

    def count(self, address: str, refusal: Refusal, now: datetime) -> None:
        """Touches no database; from any thread."""
        minute = now.replace(second=0, microsecond=0)
        with self._lock:
            key = minute, address[:64], refusal
            if key not in self._attempts and self._is_full(minute):
                key = minute, OTHERS, refusal
            self._attempts.setdefault(key, _Attempts()).count += 1

    def _is_full(self, minute: datetime) -> bool:
        """Lines of former minutes are open until they are written, which takes as long as the database is away."""
        if len(self._attempts) >= 2 * self._addresses:
            return True
        return sum(known[0] == minute for known in self._attempts) >= self._addresses

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
        minute, address, refusal = key
        count = known.count
        if known.line is None:
            line = _line(minute, address, refusal)
            line.message, line.complete = _message(count, refusal), is_over
            line.save(force_insert=True)
            known.line = line
        elif is_over or count > known.written:
            rows = AuditEntry.objects.filter(pk=known.line.pk, seq=None)
            rows.update(message=_message(count, refusal), complete=is_over)
        known.written = count
        if not is_over:
            return
        with self._lock:
            # Counted between the write and now, for a minute that is over: on its next line.
            left = known.count - count
            self._attempts.pop(key, None)
            if left:
                self._attempts[key] = _Attempts(left)


def _line(minute: datetime, address: str, refusal: Refusal) -> AuditEntry:
    door, verb, kind, _ = refusal.value
    return AuditEntry(
        at=minute,
        actor="",
        door=door,
        address=address,
        verb=verb,
        kind=kind,
        name=UNKNOWN,
        outcome=audit.Outcome.REFUSED,
    )


def _message(count: int, refusal: Refusal) -> str:
    return f"{count} {'attempt' if count == 1 else 'attempts'} within this minute {refusal.value[3]}"


class Writer:
    """The thread of a process; it starts with the first attempt and ends when no line is open."""

    def __init__(self) -> None:
        self.refused = RefusedSignIns()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._stop = threading.Event()

    def count(self, address: str, refusal: Refusal) -> None:
        self.refused.count(address, refusal, timezone.now())
        with self._starting:
            if self._thread is None:
                self._thread = self.start()

    def start(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, name="refused sign-ins", daemon=True)
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
            log.warning("refused sign-ins are written when the database answers again: %s", e)
        finally:
            connections.give_back()


_of_this_process = Writer()
count = _of_this_process.count
