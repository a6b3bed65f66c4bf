"""The periodic sweep: finds work whose task was lost. Events make things fast, the sweep makes them certain.

It calls the same services as the events do, so finding something twice does nothing. `Sweeper` leaves a pass out when the one
before found that nothing can become due by the clock alone, and the journal has not grown since.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q, Window
from django.db.models.functions import RowNumber

from fleet.changes import events, journal
from fleet.db import isolation
from fleet.models import Cluster
from fleet.services.clusters import circuits
from fleet.services.operations.exclusive import exclusive
from jobs import snapshot
from jobs.models import DeletedJob, Job, Work
from jobs.services.failover import failover, returns
from jobs.services.follow import expiry, health
from jobs.services.lifecycle import charges, cycle_requests, works
from jobs.services.scheduling import loop
from jobs.services.submission import policy_claims
from quotas import queries

_PER_MEMBER = 16
"""Works of one member that a pass enqueues: more would only wait for their lane (`jobs.services.dispatch.lanes`)."""
TERM = timedelta(seconds=10)
"""How long passes stay away after the process that made one was killed in it."""


def run(now: datetime) -> None:
    for step in _steps():
        isolation.run(f"{step.__module__}.{step.__name__}", [], partial(step, now))


def _steps() -> Sequence[Callable[[datetime], object]]:
    return (
        returns.adopt,  # first: a copy that runs again is adopted before its job is moved or placed anew
        *health.CHECKS,
        _push_due,
        _close_idle_circuits,
        expiry.run,
        _finish_deletions,
        _forget_deleted,
        policy_claims.claim_unclaimed,
        charges.release,
        loop.advance_evictions,
        _request_cycle,
    )


def _forget_deleted(now: datetime) -> None:
    DeletedJob.objects.filter(at__lt=now - timedelta(seconds=settings.CONVOY_RETENTION.deleted_jobs_s)).delete()


def _request_cycle(now: datetime) -> None:
    # Without waiting jobs too: a cycle evicts what a stopped queue or a changed tree asks for.
    if snapshot.waiting_jobs().exists() or cycle_requests.is_waiting():
        cycle_requests.request()


@contextmanager
def alone(now: datetime) -> Iterator[bool]:
    """Whether this process may walk all jobs: one does at a time. What it has passed by already is for the next pass."""
    with exclusive("jobs.sweep", now, TERM) as is_ours:
        yield is_ours


class Sweeper:
    """The passes of one process."""

    longest_pause = timedelta(seconds=30)
    """A pass is made this often whatever the journal says: what was changed without a line in it is found then."""

    def __init__(self) -> None:
        self._version = -1
        """Of the journal, when the last pass was made after which nothing was left to the clock."""
        self._swept_at = datetime.min.replace(tzinfo=UTC)
        self._quotas = 0
        """Version of the quota tree and its queues for which a cycle was requested."""

    def run(self, now: datetime) -> bool:
        """Makes a pass unless it would find nothing or another process makes one; returns whether it was made."""
        # The version before what is settled: a writer that begins in between gets a later one, and is not overlooked.
        version = journal.tip()
        if version == self._version and timedelta() <= now - self._swept_at < self.longest_pause:
            return False
        is_settled = journal.settled() >= version
        self._version = -1
        with alone(now) as is_ours:
            if not is_ours:
                return False
            run(now)
            self._follow_quotas()
        if is_settled and journal.tip() == version and not _waits_for_the_clock():
            self._version, self._swept_at = version, now
        return True

    def _follow_quotas(self) -> None:
        """Requests a cycle for a quota tree or queues that this process has not seen: they may ask for evictions although no
        job waits, and the process that changed them may have died before its request.
        """
        version = queries.version()
        if version != self._quotas:
            cycle_requests.request()
            self._quotas = version


def _waits_for_the_clock() -> bool:
    """Whether anything may have to be done later although no row changes until then. Rather too often than too seldom."""
    live, finished = Job.objects.exclude(state__in=Job.FINISHED), Job.objects.filter(state__in=Job.FINISHED)
    calm = Q(state=Job.State.RUNNING, shares=[], unhealthy_since=None, cluster__isnull=False)
    return (
        snapshot.waiting_jobs().exists()
        or cycle_requests.is_waiting()
        or works.actionable().exists()
        or Cluster.objects.filter(~Q(taints=[]) | Q(circuit_opened_at__isnull=False)).exists()
        or Job.objects.filter(deleting_at__isnull=False).exists()
        or finished.filter(Q(ttl_s__isnull=False) | Q(charge__isnull=False)).exists()
        or live.exclude(calm).exists()
    )


def _push_due(now: datetime) -> None:
    """Enqueues works that are due and claimed by no live worker."""
    turn = Window(RowNumber(), partition_by=F("cluster_id"), order_by=[F("due_at"), F("pk")])
    rows = works.due(now).annotate(turn=turn).filter(turn__lte=_PER_MEMBER)
    # The first of each member before the second of any: one with thousands of them keeps no other's from being found.
    for pk in rows.order_by("turn", "due_at").values_list("pk", flat=True)[:1000]:
        events.enqueue("jobs.push", pk)


def _close_idle_circuits(now: datetime) -> None:
    waiting = Exists(works.actionable().filter(cluster_id=OuterRef("pk")))
    idle = Cluster.objects.filter(~waiting, circuit_opened_at__isnull=False)
    isolation.each("circuits.close_idle", idle, lambda cluster: circuits.close_idle(cluster, now), now)


def _finish_deletions(now: datetime) -> None:
    """A job's last copy went, and the process died before it could forget the job."""
    deleted = Job.objects.filter(deleting_at__isnull=False)
    isolation.each("failover.finish_deletion", deleted, lambda job: failover.finish_deletion(job, now), now)


def cluster_changed(cluster_id: int, now: datetime) -> None:
    """A member came, went or recovered: what waited for it is due now, and placements may differ.

    Copies that run on there are adopted before anything is placed anew.
    """
    isolation.run("returns.adopt", [cluster_id], lambda: returns.adopt(now))
    works.make_due(Work.objects.filter(cluster_id=cluster_id), now)
    _push_due(now)
    health.check(now)
    cycle_requests.request()
