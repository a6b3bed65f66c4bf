"""Requests for the work that a lease guards: counted, recorded as served, and judged overdue.

Every time here is the database's own. Requests and runs come from many machines, whose clocks differ and step; one clock is
compared with itself only.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Case, DateTimeField, F, Q, When
from django.db.models.functions import Coalesce, Least, Now

from fleet.db import prepared
from fleet.db.prepared import KEY, TEXT
from fleet.models import LeaseRequests

SCHEDULER = "scheduler"
_RUN_S = timedelta(seconds=1)
"""How long a request may wait without being taken for one whose run was lost."""


@dataclass(frozen=True, slots=True)
class Progress:
    completed_s: float | None = None
    """Seconds since a run was last completed; None: none ever was."""
    unserved_s: float = 0.0
    """Seconds for which requests have waited without a run being completed; 0 when none waits."""

    @property
    def overdue(self) -> bool:
        return self.unserved_s > settings.CONVOY_SCHEDULER.cycle_overdue_s


def _adding(which: Q) -> prepared.Update:
    more = {"count": F("count") + 1, "asked_at": Least(Coalesce("asked_at", Now()), Now())}
    return prepared.Update(lambda param: (LeaseRequests.objects.filter(which, lease=param("lease", TEXT)), more))


_LONG_AGO = Now() - _RUN_S
_ADD = _adding(Q())
_ADD_OVERDUE = _adding(Q(asked_at=None) | Q(asked_at__lt=_LONG_AGO))
_ADD_WAITING = _adding(Q(asked_at__gte=_LONG_AGO))


def add(lease: str) -> bool:
    """Counts one more request; whether a run has to be started for it.

    Not while another one waits: the run that is to serve that one looks at the count once more before it ends. It may have
    died, so after `_RUN_S` each request asks for a run. Of a clock that was set back, the later time is forgotten.
    """
    if _ADD_OVERDUE.run(lease=lease):
        return True
    if _ADD_WAITING.run(lease=lease):
        return False
    # The first request of all, or the run ended just now.
    if not _ADD.run(lease=lease):
        LeaseRequests.objects.get_or_create(lease=lease, defaults={"count": 1, "asked_at": Now()})
    return True


def is_waiting(lease: str) -> bool:
    """Whether a request was made since the last completed run began."""
    return bool(_WAITING.values(lease=lease))


_WAITING = prepared.Rows(
    lambda param: LeaseRequests.objects.filter(lease=param("lease", TEXT), asked_at__isnull=False).values_list("pk")
)


def begin(lease: str) -> int:
    """How many requests there are: a run that begins now serves all of them. From now on it is recorded what is served."""
    with connection.cursor() as cursor:  # asked several times in each run
        cursor.execute(f'SELECT "count", served FROM {LeaseRequests._meta.db_table} WHERE lease = %s', [lease])  # noqa: S608
        row = cursor.fetchone()
    if row is None:
        return 0
    count, served = row
    if served is None:
        LeaseRequests.objects.filter(lease=lease, served=None).update(served=0)
    return int(count)


def complete(lease: str, served: int) -> int:
    """Records that a run was completed which began when there were ``served`` requests; returns how many there are now.

    One that ends later than a run that began after it is not recorded: it would make served requests unserved again.
    """
    counts = _COMPLETE.returning("count", lease=lease, served=served)
    return int(counts[0]) if counts else begin(lease)


def _completing(param: prepared.Param) -> Any:
    served = param("served", KEY)
    rows = LeaseRequests.objects.filter(Q(served=None) | Q(served__lte=served), lease=param("lease", TEXT))
    waits = Case(When(count__lte=served, then=None), default=Now(), output_field=DateTimeField())
    return rows, {"served": served, "completed_at": Now(), "asked_at": waits}


_COMPLETE = prepared.Update(_completing)


def progress(lease: str) -> Progress:
    """How the requests are served, in one query; a row that no run has begun to record yet says nothing."""
    rows = LeaseRequests.objects.filter(lease=lease, served__isnull=False)
    row = rows.values_list("asked_at", "completed_at", Now()).first()
    if row is None:
        return Progress()
    asked_at, completed_at, now = row
    return Progress(
        completed_s=None if completed_at is None else max(0.0, (now - completed_at).total_seconds()),
        unserved_s=0.0 if asked_at is None else max(0.0, (now - asked_at).total_seconds()),
    )
