"""SQLite for many writers: each waits for its turn at a file lock, and is woken when it comes.

SQLite alone lets a writer who is not let in try again after 1, 2, 5 ... 100 ms: of a dozen at once some wait for half a second.
The lock goes with the process that holds it.
"""

import fcntl
import os
from collections.abc import Callable
from typing import Any

from django.db.backends.sqlite3 import base

_WRITES = frozenset({"INSERT", "UPDATE", "DELETE", "REPLAC"})
Execute = Callable[[str, Any, bool, dict[str, Any]], Any]


class DatabaseWrapper(base.DatabaseWrapper):
    """A transaction has its turn from its begin to its end; a single statement that writes, while it runs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.execute_wrappers.append(self._execute)
        self._lock: int | None = None
        self._has_turn = False

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        made = super().get_new_connection(conn_params)
        if not self.is_in_memory_db():
            self._lock = os.open(f"{self.settings_dict['NAME']}-turn", os.O_RDWR | os.O_CREAT, 0o600)
        return made

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
                os.close(self._lock)
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
        if self._lock is not None:
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            self._has_turn = True

    def _end_turn(self) -> None:
        if self._lock is not None:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            self._has_turn = False
