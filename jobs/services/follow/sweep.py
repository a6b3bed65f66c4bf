"""The periodic pass that makes true what events make fast: it finds the work whose hint was lost.

Calls the same services as the events do, so finding something twice does nothing.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from fleet import events
from jobs import snapshot
from jobs.models import DeletedJob, Job, Work
from jobs.services.follow import expiry, health
from jobs.services.lifecycle import charges, cycle_requests, failover, returns, works
from jobs.services.scheduling import loop
from jobs.services.submission import policy_claims


def run(now: datetime) -> None:
    returns.adopt(now)
    health.check(now)
    _push_due(now)
    expiry.run(now)
    _finish_deletions(now)
    DeletedJob.objects.filter(at__lt=now - timedelta(seconds=settings.CONVOY_RETENTION.deleted_jobs_s)).delete()
    policy_claims.claim_unclaimed(now)
    charges.release(now)
    loop.advance_evictions(now)
    if snapshot.waiting_jobs().exists():
        cycle_requests.request()


def _push_due(now: datetime) -> None:
    """Enqueues works that are due and claimed by no live worker."""
    for pk in works.due(now).order_by("due_at").values_list("pk", flat=True)[:1000]:
        events.enqueue("jobs.push", pk)


def _finish_deletions(now: datetime) -> None:
    """A job's last copy went, and the process died before it could forget the job."""
    for job in Job.objects.filter(deleting_at__isnull=False):
        with transaction.atomic():
            failover.finish_deletion(job, now)


def cluster_changed(cluster_id: int, now: datetime) -> None:
    """A member came, went or recovered: what waited for it is due now, and placements may differ.

    Copies that run on there are adopted before anything is placed anew.
    """
    returns.adopt(now)
    for pk in works.make_due(Work.objects.filter(cluster_id=cluster_id), now)[:1000]:
        events.enqueue("jobs.push", pk)
    health.check(now)
    cycle_requests.request()
