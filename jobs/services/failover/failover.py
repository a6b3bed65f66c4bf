"""How a job leaves a cluster, and what follows: another attempt, or the end of its budget. No member is touched here.

Deciding to leave and finding the next place are two steps: here the attempt is closed and the job waits again (state
Moving, or Queued where its policy starts jobs through a queue only); the cycle places it, and only then is the old copy
withdrawn, unless the policy purges directly (invariant I5). A copy that runs again before that is adopted
(`jobs.services.failover.returns`). What the attempt held stays held, and its quota charged, until its copy is gone.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from django.conf import settings
from django.db import transaction
from structlog import get_logger

from fleet.changes import events, journal
from fleet.models import Hold
from jobs import metrics, snapshot
from jobs.core.failover import rules
from jobs.core.failover.causes import Cause
from jobs.core.failover.rules import Outcome, Past, PurgeMode
from jobs.core.life.jobs import JobEvent
from jobs.core.life.works import WorkEvent
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs, change, record_event
from jobs.models import Attempt, DeletedJob, Job, Work
from jobs.services.failover import evidence
from jobs.services.lifecycle import charges, cycle_requests, transitions, works
from jobs.services.lifecycle.locks import lock_jobs, lock_owners

log = get_logger(__name__)

State = Work.State


def is_current(job: Job, work: Work) -> bool:
    """Whether the work belongs to the attempt that counts, freshly read."""
    return Job.objects.filter(
        pk=job.pk, attempt=work.attempt, state__in=Job.ON_MEMBER, suspended=False, deleting_at__isnull=True
    ).exists()


@transaction.atomic
def leave(
    job: Job, outcome: Outcome, reason: Reason, now: datetime, *, purge: PurgeMode = PurgeMode.GRACEFULLY
) -> bool:
    """Closes the current attempt and lets the job wait for another place; False when it had left already."""
    standing = Job.objects.filter(pk=job.pk, attempt=job.attempt, state__in=Job.ON_MEMBER, deleting_at__isnull=True)
    state = standing.select_for_update(no_key=True).values_list("state", flat=True).first()
    if state is None:
        return False
    copy_ended = state == Job.State.BACKOFF
    reason = replace(reason, cause=evidence.note(job, job.attempt, outcome))
    transitions.move_jobs(standing, JobEvent.LEFT, reason=reason.as_json(), cluster=None, unhealthy_since=None)
    works.end_attempt(job, outcome, reason.message, now)
    job.refresh_from_db()
    if spent := budget_spent(job):
        _give_up(job, exhausted(spent, reason), now, [job.attempt] if copy_ended else [])
    else:
        works.drop_unsent([job], now)
        if _queued_by_policy(job):
            _queue_again(job, purge, now, copy_ended=copy_ended)
        else:
            _purge(job, purge, now)
        record_event(job, "Moving", f"Leaves attempt {job.attempt}: {reason.message}", now, warning=True)
    announce_jobs([job], now)
    cycle_requests.request()
    transaction.on_commit(partial(_count_evicted, job, outcome, reason), robust=True)
    return True


@transaction.atomic
def fail(job: Job, reason: Reason, now: datetime) -> bool:
    """Ends a job that runs and cannot succeed, and has its copy removed; False when it had left its cluster already."""
    standing = Job.objects.filter(pk=job.pk, attempt=job.attempt, state__in=Job.ON_MEMBER, deleting_at__isnull=True)
    if not lock_jobs(standing):
        return False
    reason = replace(reason, cause=evidence.note(job, job.attempt, Outcome.FAILED))
    works.end_attempt(job, Outcome.FAILED, reason.message, now)
    job.refresh_from_db()
    _give_up(job, reason, now, [], event="Failed")
    announce_jobs([job], now)
    cycle_requests.request()
    return True


def _count_evicted(job: Job, outcome: Outcome, reason: Reason) -> None:
    metrics.EVICTED.labels(job.leaf, outcome).inc()
    log.warning(
        "failover", job=str(job), attempt=job.attempt, outcome=str(outcome), state=job.state, reason=reason.message
    )


def budget_spent(job: Job) -> str:
    """Which of its budgets the job has used up, in words; empty while it may be tried again."""
    rows = Attempt.objects.filter(job=job, ended_at__isnull=False)
    known = rows.values_list("cluster_name", "outcome", "ended_at", "cause")
    past = [Past(cluster, outcome, at, cause) for cluster, outcome, at, cause in known if at]
    spec, limits = snapshot.spec_of(job), settings.CONVOY_FAILOVER
    most = spec.max_attempts or limits.max_attempts
    budgets = {Cause.CODE_ERROR: limits.max_code_errors, Cause.OUT_OF_MEMORY: limits.max_out_of_memory}
    budgets = {cause: min(count, most) for cause, count in budgets.items()} | dict(spec.failure_budgets)
    return rules.budget_spent(past, most, budgets)


def _give_up(job: Job, final: Reason, now: datetime, ended: Sequence[int], *, event: str = "AttemptsExhausted") -> None:
    """The job is over, its copy may not be: quota and hold are free once its pods are gone (invariants I2, I6)."""
    transitions.enter(job, JobEvent.GAVE_UP)
    job.reason = final.as_json()
    job.reclaim, job.finished_at = None, now
    job.save(update_fields=["state", "reason", "reclaim", "finished_at"])
    works.withdraw_live(job, now, ended=ended)
    record_event(job, event, final.message, now, warning=True)
    charges.release(now, [job.uid])


def exhausted(spent: str, last: Reason) -> Reason:
    return Reason(Code.ATTEMPTS_EXHAUSTED, f"{spent}, the last time because {last.message}", cause=last.cause)


def _queued_by_policy(job: Job) -> bool:
    """Whether the policy starts jobs through a queue only: then a job that leaves its cluster is queued again."""
    return snapshot.spec_of(job).suspended


def _queue_again(job: Job, purge: PurgeMode, now: datetime, *, copy_ended: bool) -> None:
    """Queues the job where it stood. A copy that has ended needs no keeping: removed at once, it frees the quota."""
    transitions.enter(job, JobEvent.REQUEUED)
    job.save(update_fields=["state"])
    _purge(job, PurgeMode.DIRECTLY if copy_ended and purge is PurgeMode.GRACEFULLY else purge, now)
    charges.release(now, [job.uid])


def _purge(job: Job, mode: PurgeMode, now: datetime) -> None:
    works_of_attempt = Work.objects.filter(job_uid=job.uid, attempt=job.attempt)
    if mode is PurgeMode.DIRECTLY:
        works.withdraw(job, now)
    elif mode is PurgeMode.NEVER and transitions.move_works(works_of_attempt, WorkEvent.KEPT):
        works.release_hold(job.uid, job.attempt, now)


def after_removal(work: Work, now: datetime) -> None:
    """A copy is gone: sends of the job that waited for that are due, and its charge may end."""
    waiting = Work.objects.filter(job_uid=work.job_uid, state=State.PENDING)
    for pk in list(waiting.values_list("pk", flat=True)):
        Work.objects.filter(pk=pk).update(due_at=now)
        events.enqueue("jobs.push", pk)
    charges.release(now, [work.job_uid])
    job = Job.objects.filter(uid=work.job_uid).first()
    if job is not None and job.deleting_at is not None:
        finish_deletion(job, now)
    cycle_requests.request()


@transaction.atomic
def finish_deletion(job: Job, now: datetime) -> bool:
    """Forgets a job whose copies are all gone; False while one is left."""
    lock_owners([job.uid])
    if Work.objects.filter(job_uid=job.uid).exclude(state=State.GONE).exists():
        return False
    Work.objects.filter(job_uid=job.uid).delete()
    Hold.objects.filter(job_uid=job.uid).delete()
    deletion = change(job, journal.Action.DELETED)
    DeletedJob.objects.get_or_create(uid=job.uid, defaults={"at": now})
    if Job.objects.filter(pk=job.pk, deleting_at__isnull=False).delete()[0]:
        events.announce([deletion], now)
    cycle_requests.request()
    return True
