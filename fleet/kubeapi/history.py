"""The journal as the history of the Kubernetes-style API, and how long its pages are."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from fleet.changes import dry_runs, journal
from fleet.kube.server.kinds import History
from fleet.kube.server.request import Request

_TABLE_CHUNK, _TABLE_PAGE = 500, 2000
"""kubectl asks for 500 rows at a time and not more than five times a second: it would take 40 s to print 100,000."""
_LONGEST_PAGE = 500
"""Of whole objects; a table of lines is a tenth of their size."""


class Journal(History):
    piece = 500

    def version(self) -> int:
        return journal.head()

    def newest(self) -> int:
        return journal.tip()

    def floor(self) -> int:
        return journal.floor()

    @contextmanager
    def transaction(self, dry: bool) -> Iterator[None]:
        with dry_runs.taken_back() if dry else transaction.atomic():
            yield

    def limit(self, request: Request) -> int:
        """As asked, up to a bound; of a long table, which is being printed, later pages are longer."""
        lines = request.wants_table and not request.wants_objects
        limit = min(request.number("limit"), _TABLE_PAGE if lines else _LONGEST_PAGE)
        long = lines and "continue" in request.query and limit == _TABLE_CHUNK
        return _TABLE_PAGE if long else limit
