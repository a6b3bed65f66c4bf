"""The journal as the history of the Kubernetes-style API, and how long its pages are."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from fleet.changes import journal
from fleet.kube.server.kinds import History
from fleet.kube.server.request import Request

_TABLE_CHUNK, _TABLE_PAGE = 500, 2000
"""kubectl asks for 500 rows at a time and not more than five times a second: it would take 40 s to print 100,000."""
_LONGEST_PAGE = 2000


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
        with transaction.atomic():
            yield
            if dry:
                transaction.set_rollback(True)

    def limit(self, request: Request) -> int:
        """As asked, up to a bound; of a long table, which is being printed, later pages are longer."""
        limit = min(request.number("limit"), _LONGEST_PAGE)
        long = request.wants_table and "continue" in request.query and limit == _TABLE_CHUNK
        return _TABLE_PAGE if long else limit
