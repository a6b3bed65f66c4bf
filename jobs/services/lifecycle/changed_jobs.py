"""Which jobs have changed since this thread looked last, by name, as the journal says: so that a look costs what has changed.

Knows nothing of what follows from a change. From time to time everything has to be looked at, as `Changes.names` says: the
journal is forgotten in time, and may be that of a restored database.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.changes import journal
from jobs.events import WORK
from jobs.kinds import registry

Key = tuple[str, str]
"""Namespace and name."""
_IGNORED = ("Event", WORK)
_MOST = 5_000
"""Lines beyond which looking at everything costs less."""
_ALL_AFTER = timedelta(minutes=1)
_KINDS = frozenset(kind.resource.kind for kind in registry.everything())


@dataclass(slots=True)
class Changes:
    """Used by one thread."""

    _last: journal.Entry | None = None
    """The newest line whose change was dealt with."""
    _read: journal.Entry | None = None
    """The newest line that `names` has read."""
    _all_at: datetime | None = None

    def names(self, now: datetime) -> Collection[Key] | None:
        """The jobs that have changed since `done` was called last; None: any may have. Rows have to be read after this."""
        is_due = self._all_at is None or not timedelta() <= now - self._all_at < _ALL_AFTER
        entries = [] if self._last is None or is_due else journal.after(self._last.version - 1, _MOST, but=_IGNORED)
        if not entries or len(entries) == _MOST or entries[0] != self._last:
            self._read, self._all_at = journal.newest(but=_IGNORED), now
            return None
        self._read = entries[-1]
        return {(entry.namespace, entry.name) for entry in entries[1:] if entry.kind in _KINDS}

    def done(self) -> None:
        """What followed from the changes is written."""
        self._last = self._read

    def forget(self) -> None:
        """The next look is at everything."""
        self._last = None
