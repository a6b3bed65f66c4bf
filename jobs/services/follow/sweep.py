"""The periodic sweep: does everything that is due, even if the task message for it was lost.

It calls the same services as the tasks, and these are idempotent. `Sweeper` skips a pass if nothing can have become due: the
pass before found nothing that depends on the time, and the journal has not grown since.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from fleet.changes import events, journal
from fleet.db import isolation, prepared
from fleet.db.prepared import TIME
from fleet.models import Cluster, Namespace
from fleet.services.clusters import circuits, node_exclusions
from fleet.services.operations import clock_steps
from fleet.services.operations.clock_steps import StepDetector
from fleet.services.operations.exclusive import Turn, exclusive, kept
from jobs import queries, snapshot
from jobs.models import Attempt, DeletedJob, Job, Work
from jobs.services.dispatch.copies import kept_off
from jobs.services.failover import failover, incidents, lost_gangs, returns
from jobs.services.follow import diagnosing, hangs, notices, runtime_facts, volume_nodes
from jobs.services.follow.timeouts import cool_offs, expiry, health, max_wait, retention, time_limits
from jobs.services.lifecycle import cycle_requests, dependencies, works
from jobs.services.lifecycle.accounting import charges, deleted_use, usage_spans
from jobs.services.scheduling import loop
from jobs.services.scheduling.demand import budgets
from jobs.services.submission import policy_claims
from jobs.services.submission.changes import interrupted_deletions
from quotas import queries as quotas
from quotas.services import windows

TERM = timedelta(seconds=10)
"""How long the lock of a pass lasts: no other process sweeps for so long after one was killed during a pass."""


def run(now: datetime, *, clock_is_known: bool = True) -> None:
    """While it is not known whether the clock has stepped, nothing is ended or deleted by a limit of time.

    Every pass makes all steps, even when another process has taken its turn: or a slow step would keep the later ones from ever
    being made.
    """
    for step in _steps():
        if step in _BY_LIMITS and not clock_is_known:
            continue
        isolation.run(f"{step.__module__}.{step.__name__}", [], partial(step, now))


def _steps() -> Sequence[Callable[[datetime], object]]:
    return (
        returns.adopt,  # first, so that a copy on a recovered cluster is adopted before its job is moved or placed again
        *health.CHECKS,
        cool_offs.run,
        diagnosing.request_due,
        hangs.review,
        volume_nodes.request_due,
        runtime_facts.request_due,
        incidents.run,
        node_exclusions.settle,
        kept_off.order,  # before the works that are due are pushed
        _push_due,
        _close_idle_circuits,
        expiry.run,
        retention.run,
        interrupted_deletions.resume,
        _finish_deletions,
        _forget_deleted,
        deleted_use.forget,
        policy_claims.claim_unclaimed,
        charges.release,
        dependencies.settle,
        notices.settle,
        loop.advance_evictions,
        max_wait.run,
        time_limits.run,
        budgets.review,
        windows.review,
        usage_spans.settle,
        _request_cycle,
    )


def _forget_deleted(now: datetime) -> None:
    keep = timedelta(seconds=settings.CONVOY_RETENTION.deleted_jobs_s)
    if _ANY_DELETED.values(before=now - keep):
        DeletedJob.objects.filter(at__lt=clock_steps.forgettable_before(keep, now)).delete()


_ANY_DELETED = prepared.Rows(
    lambda param: DeletedJob.objects.filter(at__lt=param("before", TIME)).order_by().values_list("pk")[:1]
)


_BY_LIMITS = (expiry.run, retention.run, _forget_deleted, deleted_use.forget, max_wait.run, time_limits.run)


def _request_cycle(now: datetime) -> None:
    # A requested cycle runs even if no job waits: it may have to evict jobs after a queue was stopped or the tree has changed.
    if any(jobs.values() for jobs in (_WAITING, _GROWING, _ELASTIC)) or cycle_requests.is_waiting():
        cycle_requests.request()


def _any(build: Callable[[], QuerySet[Any]]) -> prepared.Rows[Any]:
    """The key of one of the rows."""
    return prepared.Rows(lambda _: build().order_by().values_list("pk")[:1])


_WAITING, _GROWING, _ELASTIC = _any(snapshot.waiting_jobs), _any(queries.growing_jobs), _any(queries.elastic_jobs)


@contextmanager
def alone(now: datetime) -> Iterator[Turn]:
    """Takes the lock of the sweep; what it yields is false if another process has it."""
    with exclusive("jobs.sweep", now, TERM) as turn:
        yield turn


class Sweeper:
    """Runs the passes of one process, and skips those that would find nothing."""

    longest_pause = timedelta(seconds=30)
    """A pass is made at least this often, because a change may have been written without a journal entry."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic, self._steps = monotonic, StepDetector()
        self._version = -1
        """The journal's version at the last pass that left nothing to do later; -1 if the last pass did."""
        self._swept_at = datetime.min.replace(tzinfo=UTC)
        self._quotas = 0
        """Version of the quota tree and its queues for which a cycle was requested."""

    def run(self, now: datetime) -> bool:
        """Makes a pass, unless it would find nothing or another process is making one. Returns whether it was made."""
        # The version is read before `settled`: a writer that starts in between gets a later version, and causes another pass.
        version = journal.tip()
        if version == self._version and timedelta() <= now - self._swept_at < self.longest_pause:
            return False
        is_settled = journal.settled() >= version
        self._version = -1
        with alone(now) as turn:
            if not turn:
                return False
            with kept(turn, now, TERM):
                looked = isolation.run("clock_steps", [], lambda: self._steps.look(now, self._monotonic()))
                run(now, clock_is_known=looked is not None)
                self._follow_quotas()
        if is_settled and journal.tip() == version and not _waits_for_the_clock():
            self._version, self._swept_at = version, now
        return True

    def _follow_quotas(self) -> None:
        """Requests a cycle if the quota tree or the queues have changed since this process last did.

        Such a change may require evictions even if no job waits, and the process that made it may have died before it requested
        a cycle.
        """
        version = quotas.version()
        if version != self._quotas:
            cycle_requests.request()
            self._quotas = version


def _waits_for_the_clock() -> bool:
    """Whether anything may become due later without a change of rows. May be true although nothing will, never the reverse."""
    return (
        any(rows.values() for rows in _LASTING)
        or cycle_requests.is_waiting()
        or hangs.exist()
        or time_limits.exist()
        or budgets.exist()
        or windows.exist()
        or usage_spans.exist()
        or node_exclusions.exist()
        or lost_gangs.exist()
    )


def _finished_with_more_to_come() -> QuerySet[Job]:
    return Job.objects.filter(Q(ttl_s__isnull=False) | Q(charge__isnull=False), state__in=Job.FINISHED)


def _live_but_not_healthy() -> QuerySet[Job]:
    healthy = Q(state=Job.State.RUNNING, shares=[], unhealthy_since=None, cluster__isnull=False)
    return Job.objects.exclude(state__in=Job.FINISHED).exclude(healthy)


_LASTING = (
    _WAITING,
    _any(works.actionable),
    _any(works.resizing),
    _GROWING,
    _any(notices.unsettled),
    _any(lambda: Cluster.objects.filter(~Q(taints=[]) | Q(circuit_opened_at__isnull=False))),
    _any(lambda: Job.objects.filter(deleting_at__isnull=False)),
    _any(lambda: Namespace.objects.filter(deleting_at__isnull=False)),
    _any(_finished_with_more_to_come),
    _any(_live_but_not_healthy),
    _any(lambda: Attempt.objects.filter(log_due_at__isnull=False)),
    _any(lambda: Attempt.objects.filter(facts_due_at__isnull=False)),
)
"""What may become due without a change of rows."""


def _push_due(now: datetime) -> None:
    """Enqueues works that are due and not claimed by a live worker."""
    for pk in works.to_push(now):
        events.enqueue("jobs.push", pk)


def _close_idle_circuits(now: datetime) -> None:
    idle = _IDLE_CIRCUITS.objects()
    isolation.each("circuits.close_idle", idle, lambda cluster: circuits.close_idle(cluster, now), now)


def _idle_circuits() -> QuerySet[Cluster]:
    waiting = Exists(works.actionable().filter(cluster_id=OuterRef("pk")))
    resizing = Exists(works.resizing().filter(cluster_id=OuterRef("pk")))
    return Cluster.objects.filter(~waiting, ~resizing, circuit_opened_at__isnull=False)


_IDLE_CIRCUITS = prepared.Rows(lambda _: _idle_circuits())


def _finish_deletions(now: datetime) -> None:
    """Finishes deletions whose process died after the last copy was removed, before the job's row was deleted."""
    deleted = _DELETED.objects()
    isolation.each("failover.finish_deletion", deleted, lambda job: failover.finish_deletion(job, now), now)


_DELETED = prepared.Rows(lambda _: Job.objects.filter(deleting_at__isnull=False))


def cluster_changed(cluster_id: int, now: datetime) -> None:
    """Handles a member that joined, left or changed its state: its works are due now, and a cycle is requested."""
    # Copies that still run there are adopted first, before their jobs are moved or placed again.
    isolation.run("returns.adopt", [cluster_id], lambda: returns.adopt(now))
    works.make_due(Work.objects.filter(cluster_id=cluster_id), now)
    _push_due(now)
    health.check(now)
    cycle_requests.request()
