"""SQLite for many writers: each waits at a file lock, and is woken when it gets it.

SQLite alone makes a blocked writer retry after 1, 2, 5 ... 100 ms: of a dozen at once some wait for half a second.
The lock goes with the process that holds it.
A process that is stopped while it holds it delays each of the others for 20 s: then their
transaction fails, as it does when SQLite itself is locked.
"""

import fcntl
import os
import threading
from collections.abc import Callable
from typing import Any

from django.db import OperationalError
from django.db.backends.sqlite3 import base

_WRITES = frozenset({"INSERT", "UPDATE", "DELETE", "REPLAC"})
_TURN_TIMEOUT_S = 20.0
"""Where the database's settings have no ``TURN_TIMEOUT_S``."""
Execute = Callable[[str, Any, bool, dict[str, Any]], Any]


class _Lock:
    """An open file to be locked. Closed when nothing refers to it, as `sqlite3` closes the file of a connection: threads end
    that have not closed theirs.
    """

    def __init__(self, path: str) -> None:
        self._file = -1
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def __del__(self) -> None:
        self.close()

    def fileno(self) -> int:
        return self._file

    def close(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)


class _Wait:
    """One wait for the lock of an open file. Given up, its thread closes the file once it has the lock, which frees it."""

    def __init__(self, lock: _Lock) -> None:
        self._lock = lock
        self._has_it = threading.Event()
        self._deciding = threading.Lock()
        self._given_up = False
        threading.Thread(target=self._run, name="sqlite turn", daemon=True).start()

    def granted(self, timeout_s: float) -> bool:
        self._has_it.wait(timeout_s)
        with self._deciding:
            self._given_up = not self._has_it.is_set()
        return not self._given_up

    def _run(self) -> None:
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        with self._deciding:
            if self._given_up:
                self._lock.close()
            else:
                self._has_it.set()


class DatabaseWrapper(base.DatabaseWrapper):
    """A transaction has its turn from its begin to its end; a single statement that writes, while it runs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.execute_wrappers.append(self._execute)
        self._lock: _Lock | None = None
        self._has_turn = False

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        if not self.is_in_memory_db():
            self._lock = self._open_lock()
        return connection

    def _start_transaction_under_autocommit(self) -> None:
        self._take_turn()
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # private: not in the stubs
        except BaseException:
            self._end_turn()
            raise

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]  # as above
        self._end_turn()

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]  # as above
        finally:
            self._end_turn()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]  # as above
        finally:
            if self._lock is not None:
                self._lock.close()
                self._lock, self._has_turn = None, False

    def _execute(self, execute: Execute, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if self._has_turn or sql[:6] not in _WRITES:
            return execute(sql, params, many, context)
        self._take_turn()
        try:
            return execute(sql, params, many, context)
        finally:
            self._end_turn()

    def _take_turn(self) -> None:
        if self._lock is None:
            return
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait_for_turn(self._lock)
        self._has_turn = True

    def _wait_for_turn(self, lock: _Lock) -> None:
        """Waits in a thread, since a file lock knows no timeout; a wait that was given up closes the file it waited for."""
        timeout_s = float(self.settings_dict.get("TURN_TIMEOUT_S", _TURN_TIMEOUT_S))
        if not _Wait(lock).granted(timeout_s):
            self._lock = self._open_lock()
            raise OperationalError(
                f"database is locked: another process has been writing for more than {timeout_s:g} s"
            )

    def _open_lock(self) -> _Lock:
        return _Lock(f"{self.settings_dict['NAME']}-turn")

    def _end_turn(self) -> None:
        if self._lock is not None:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            self._has_turn = False
