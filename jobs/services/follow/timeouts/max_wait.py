"""Ends jobs that have waited for quota and room longer than they may: by their annotation
`job-supervisor.kube-ai.io/max-wait-time`, or by the `queue-timeout` of their queue, whichever is shorter.

The time counts anew after each attempt: it is how long a job waits at a stretch, the first time or after its place was taken
back. A person who suspended a job has not made it wait.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Max, Q, QuerySet

from fleet.db import isolation, prepared
from fleet.db.durations import later_by
from fleet.services.operations import clock_steps
from fleet.services.operations.clock_steps import Elapsed
from jobs import snapshot
from jobs.core.life.jobs import JobEvent
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs, record_event
from jobs.models import Job
from jobs.services.follow.timeouts.time_limits import leaves_by
from jobs.services.lifecycle import cycle_requests, dependencies, transitions, works
from jobs.services.lifecycle.accounting import charges
from jobs.services.lifecycle.locks import lock_jobs
from quotas.core.trees.durations import format_duration


def run(now: datetime) -> int:
    """Ends the jobs that are due, and returns how many."""
    if not _ANY_WAITING.values():
        return 0
    timeouts = leaves_by(snapshot.tree_in_force()[0], max_runtime=False)
    passed = clock_steps.elapsed(now)
    waiting = _waiting().alias(until=later_by("queued_at", "max_wait_s"))
    due = Q(max_wait_s__isnull=False) & passed.due("queued_at", "until")
    for timeout, leaves in timeouts.items():
        due |= Q(leaf__in=leaves) & passed.over("queued_at", timeout)
    return sum(isolation.each("follow.max_wait", waiting.filter(due), lambda job: _end(job, timeouts, passed), now))


def _waiting() -> QuerySet[Job]:
    return Job.objects.filter(
        state__in=Job.WAITING, shares=[], suspended=False, deleting_at__isnull=True,
        awaits__isnull=True,
    )  # fmt: skip


_ANY_WAITING = prepared.Rows(lambda _: _waiting().order_by().values_list("pk")[:1])


@transaction.atomic
def _end(job: Job, timeouts: Mapping[timedelta, list[str]], passed: Elapsed) -> bool:
    now = passed.now
    if not lock_jobs(_waiting().filter(pk=job.pk)):
        return False
    job.refresh_from_db()
    limit, words = min(_limits(job, timeouts), default=(None, ""))
    if limit is None or min(map(passed.since, _waits_since(job))) < limit:
        return False
    before = (job.reason or {}).get("message", "")
    message = f"waited {words}; the last reason: {before}"
    transitions.enter(job, JobEvent.WAITED_TOO_LONG)
    job.reason = Reason(Code.MAX_WAIT_EXCEEDED, message).as_json()
    job.reclaim, job.finished_at = None, now
    job.save(update_fields=["state", "reason", "reclaim", "finished_at"])
    works.withdraw_live(job, now, ended=[])
    record_event(job, "MaxWaitExceeded", message, now, warning=True)
    charges.release(now, [job.uid])
    announce_jobs([job], now)
    cycle_requests.request()
    return True


def _limits(job: Job, timeouts: Mapping[timedelta, list[str]]) -> Iterator[tuple[timedelta, str]]:
    """How long it may wait, and whose word that is."""
    if job.max_wait_s is not None:
        words = f"{job.max_wait_s} s for quota and room, the most its max-wait-time allows"
        yield timedelta(seconds=job.max_wait_s), words
    for timeout, leaves in timeouts.items():
        if job.leaf in leaves:
            yield timeout, f"{format_duration(timeout)} for quota and room, the queue-timeout of its queue {job.leaf}"


def _waits_since(job: Job) -> list[datetime]:
    """After the last of these it began to wait: it was submitted or resumed, the jobs before it or its attempt ended, or its
    pods had left.
    """
    ended = job.attempts.aggregate(last=Max("ended_at"))["last"]
    left = (job.reclaim or {}).get("until")
    moments = (job.queued_at, dependencies.met_at(job), ended, datetime.fromisoformat(left) if left else None)
    return [moment for moment in moments if moment is not None]
