"""Ends jobs whose time is over: they have run longer than their queue allows (`max-runtime`), or their deadline has come
(annotation ``convoy.dev/deadline``). Their pods are stopped as those of a deleted job are, with their grace period.

How long jobs may wait is `jobs.services.follow.timeouts.max_wait`'s.
"""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet

from fleet.db import isolation, prepared
from fleet.db.prepared import TIME
from fleet.services.operations import clock_steps
from fleet.services.operations.clock_steps import Elapsed
from jobs import snapshot
from jobs.core.failover.rules import Outcome
from jobs.core.life.jobs import JobEvent
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs, record_event
from jobs.models import Attempt, Job
from jobs.services.lifecycle import cycle_requests, transitions, works
from jobs.services.lifecycle.accounting import charges
from jobs.services.lifecycle.locks import lock_jobs
from quotas.core.trees.durations import format_duration
from quotas.core.trees.tree import Tree


def run(now: datetime) -> int:
    """Ends the jobs that are due, and returns how many."""
    limits = leaves_by(snapshot.tree_in_force()[0], max_runtime=True)
    # The former time, which decides shortly after a step forward, is never later than now.
    if not limits and not _ANY_PAST_DEADLINE.values(until=now):
        return 0
    passed = clock_steps.elapsed(now)
    ended = isolation.each("follow.deadline", _past_deadline(passed), lambda job: _end_at_deadline(job, passed), now)
    count = sum(ended)
    if limits:
        ran_out = Job.objects.filter(pk__in=_ran_longer(limits, passed).values("job"))
        count += sum(isolation.each("follow.max_runtime", ran_out, lambda job: _end_too_long(job, limits, passed), now))
    return count


def exist() -> bool:
    """Whether any live job may become due by the clock alone."""
    if _ANY_DEADLINE.values():
        return True
    return bool(leaves_by(snapshot.tree_in_force()[0], max_runtime=True) and _ANY_OPEN_ATTEMPT.values())


def leaves_by(tree: Tree | None, *, max_runtime: bool) -> Mapping[timedelta, list[str]]:
    """The leaves with each limit of how long their jobs may run, or wait."""
    leaves: dict[timedelta, list[str]] = defaultdict(list)
    for leaf in tree.leaves if tree else ():
        limit = leaf.attributes.time.max_runtime if max_runtime else leaf.attributes.time.queue_timeout
        if limit is not None:
            leaves[limit].append(leaf.path)
    return leaves


def _live() -> QuerySet[Job]:
    return Job.objects.filter(deleting_at__isnull=True).exclude(state__in=Job.FINISHED)


_ANY_DEADLINE = prepared.Rows(lambda _: _live().filter(deadline_at__isnull=False).order_by().values_list("pk")[:1])
_ANY_PAST_DEADLINE = prepared.Rows(
    lambda param: _live().filter(deadline_at__lte=param("until", TIME)).order_by().values_list("pk")[:1]
)
_ANY_OPEN_ATTEMPT = prepared.Rows(
    lambda _: Attempt.objects.filter(ended_at__isnull=True).order_by().values_list("pk")[:1]
)


def _past_deadline(passed: Elapsed) -> QuerySet[Job]:
    return _live().filter(deadline_at__lte=passed.deadlines_until)


def _ran_longer(limits: Mapping[timedelta, list[str]], passed: Elapsed) -> QuerySet[Attempt]:
    """The open attempts that have run longer than their leaf allows."""
    due = Q()
    for limit, leaves in limits.items():
        due |= Q(job__leaf__in=leaves) & passed.over("started_at", limit)
    current = Attempt.objects.filter(ended_at__isnull=True, job__state__in=Job.ON_MEMBER)
    return current.filter(due, job__deleting_at__isnull=True).order_by()


def _end_at_deadline(job: Job, passed: Elapsed) -> bool:
    message = f"its deadline {job.deadline_at:%F %T} UTC has come"
    return _end(_past_deadline(passed).filter(pk=job.pk), Reason(Code.DEADLINE_EXCEEDED, message), passed.now)


def _end_too_long(job: Job, limits: Mapping[timedelta, list[str]], passed: Elapsed) -> bool:
    limit = next((limit for limit, leaves in limits.items() if job.leaf in leaves), timedelta())
    message = f"ran for {format_duration(limit)}, the max-runtime of its queue {job.leaf}"
    due = Job.objects.filter(pk__in=_ran_longer(limits, passed).filter(job=job).values("job"))
    return _end(due, Reason(Code.MAX_RUNTIME_EXCEEDED, message), passed.now)


@transaction.atomic
def _end(due: QuerySet[Job], reason: Reason, now: datetime) -> bool:
    """Ends the job if it is still due under its lock."""
    locked = lock_jobs(due)
    if not locked or not due.filter(pk__in=locked).exists():
        return False
    job = Job.objects.get(pk=locked[0])
    works.end_attempt(job, Outcome.TIMED_OUT, reason.message, now)
    transitions.enter(job, JobEvent.TIMED_OUT)
    job.reason, job.reclaim, job.finished_at, job.unhealthy_since = reason.as_json(), None, now, None
    job.save(update_fields=["state", "reason", "reclaim", "finished_at", "unhealthy_since"])
    works.withdraw_live(job, now, ended=[])
    record_event(job, reason.code, reason.message, now, warning=True)
    charges.release(now, [job.uid])
    announce_jobs([job], now)
    cycle_requests.request()
    return True
