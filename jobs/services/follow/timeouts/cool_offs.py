"""Ends cool-offs that begin later than now: of attempts that ended before the clock was set back.

How long a cluster is excluded for a job counts from the end of the attempt that failed there (`jobs.core.failover.rules`).
"""

from datetime import datetime

from django.db import transaction

from fleet.db import clock, prepared
from fleet.db.prepared import TIME
from jobs.events import announce_jobs
from jobs.models import Attempt, Job
from jobs.services.lifecycle.locks import lock_jobs


def run(now: datetime) -> int:
    """They begin now. Returns how many attempts that concerns."""
    owners = [owner for (owner,) in _OWNERS_OF_LATE.values(after=now + clock.STEP)]
    return _begin_now(owners, now) if owners else 0


_OWNERS_OF_LATE = prepared.Rows(
    lambda param: Attempt.objects.filter(ended_at__gt=param("after", TIME)).order_by().values_list("job").distinct()
)


@transaction.atomic
def _begin_now(owners: list[int], now: datetime) -> int:
    locked = lock_jobs(Job.objects.filter(pk__in=owners))
    count = Attempt.objects.filter(job__in=locked, ended_at__gt=now + clock.STEP).update(ended_at=now)
    # The scheduler's cache reads their history again.
    announce_jobs(list(Job.objects.filter(pk__in=locked, state__in=Job.WAITING).order_by("pk")), now)
    return count
