"""Keeps the GPU-time of a job's attempts when the job is deleted, in the same transaction: deleting a job wipes no record."""

from datetime import datetime, timedelta

from django.conf import settings

from fleet.db import prepared
from fleet.db.prepared import TIME
from fleet.services.operations import clock_steps
from jobs import snapshot
from jobs.models import DeletedUse, Job
from quotas.core.accounts.budget_accounts import begin_of_longest

COUNTS_HALF_LIVES = 16
"""Use that is older counts less than a sixty-thousandth, and is not loaded."""
_KEPT = timedelta(days=366)
"""At least so long use is kept, so that it counts again when the half-life is raised."""
REPORTED_HALF_LIVES = COUNTS_HALF_LIVES // 2
"""So far back use can be added up as it counted then: what is forgotten by now counted less than a 256th at that time."""


def keep(job: Job, now: datetime) -> None:
    """Copies the use of a job that is about to be deleted; its row is locked."""
    if not job.leaf or not job.gpus:
        return
    rows = job.attempts.values_list("number", "leaf", "gpus", "placed_at", "ended_at", "sizes")
    DeletedUse.objects.bulk_create(
        [
            DeletedUse(
                job=job.pk,
                number=number,
                leaf=leaf or job.leaf,
                user=job.submitted_by,
                gpus=job.gpus if gpus is None else gpus,
                placed_at=placed_at,
                ended_at=ended_at or now,
                sizes=sizes,
            )
            for number, leaf, gpus, placed_at, ended_at, sizes in rows
        ],
        ignore_conflicts=True,
    )


def reported_since(now: datetime) -> datetime:
    """The earliest moment of which it is still known how much use counted."""
    return now - timedelta(seconds=REPORTED_HALF_LIVES * settings.CONVOY_CYCLE.share_half_life_s)


def counted_since(now: datetime) -> datetime:
    """Use that ended before then counts no more."""
    return now - timedelta(seconds=COUNTS_HALF_LIVES * settings.CONVOY_CYCLE.share_half_life_s)


def forget(now: datetime) -> None:
    """Removes what counts neither for shares, also if the half-life were raised, nor for a budget."""
    keep = max(now - counted_since(now), _KEPT)
    if not _ANY_BEFORE.values(before=now - keep):
        return
    faded, counts = clock_steps.forgettable_before(keep, now), begin_of_longest(snapshot.tree_in_force()[0], now)
    DeletedUse.objects.filter(ended_at__lt=min(faded, counts or faded)).delete()


_ANY_BEFORE = prepared.Rows(
    lambda param: DeletedUse.objects.filter(ended_at__lt=param("before", TIME)).order_by().values_list("pk")[:1]
)
