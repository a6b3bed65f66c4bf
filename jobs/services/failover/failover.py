"""Makes a job leave its cluster: it waits for another attempt, or ends because its budget of attempts is spent.

Leaving and being placed again are two steps. Here the attempt is closed and the job waits (state Moving, or Queued if its
policy starts jobs through a queue only). The next cycle places it, and only then is the old copy withdrawn, unless the policy
purges directly (invariant I5). If the old copy runs again before that, its attempt is resumed
(`jobs.services.failover.returns`). The hold and the quota charge of the attempt remain until its copy is removed. No member is
contacted here.
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
from jobs.core.failover.causes import Cause, lost_nodes
from jobs.core.failover.rules import Outcome, Past, PurgeMode
from jobs.core.life.jobs import JobEvent
from jobs.core.life.works import WorkEvent
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs, change, record_event
from jobs.models import Attempt, DeletedJob, Job, Work
from jobs.services.failover import evidence
from jobs.services.lifecycle import cycle_requests, dependencies, transitions, works
from jobs.services.lifecycle.accounting import charges, deleted_use, runs, usage_spans
from jobs.services.lifecycle.copies import other_copies
from jobs.services.lifecycle.locks import lock_jobs, lock_owners

log = get_logger(__name__)

State = Work.State


def is_current(job: Job, work: Work) -> bool:
    """Whether the work belongs to the job's current attempt, read from the database."""
    return Job.objects.filter(
        pk=job.pk, attempt=work.attempt, state__in=Job.ON_MEMBER, suspended=False, deleting_at__isnull=True
    ).exists()


@transaction.atomic
def leave(
    job: Job, outcome: Outcome, reason: Reason, now: datetime, *, purge: PurgeMode = PurgeMode.GRACEFULLY
) -> bool:
    """Closes the current attempt and requeues the job. Returns False if the job has left that attempt already."""
    current = Job.objects.filter(pk=job.pk, attempt=job.attempt, state__in=Job.ON_MEMBER, deleting_at__isnull=True)
    state = current.select_for_update(no_key=True).values_list("state", flat=True).first()
    if state is None:
        return False
    copy_ended = state == Job.State.BACKOFF
    reason = replace(reason, cause=evidence.determine(job, job.attempt, outcome, now))
    transitions.move_jobs(current, JobEvent.LEFT, reason=reason.as_json(), cluster=None, unhealthy_since=None)
    works.end_attempt(job, outcome, reason.message, now)
    job.refresh_from_db()
    if spent := budget_spent(job):
        _give_up(job, exhausted(spent, reason), now, [job.attempt] if copy_ended else [])
    else:
        works.drop_unsent([job], now)
        lacks_node = outcome is Outcome.FAILED and reason.cause == Cause.INFRASTRUCTURE
        if (copy_ended or lacks_node) and purge is PurgeMode.GRACEFULLY:
            purge = PurgeMode.DIRECTLY  # it does not go on, and its room may be what the replacement needs
        if _queued_by_policy(job):
            _requeue(job, purge, now)
        else:
            _purge(job, purge, now)
        record_event(job, "Moving", f"Leaves attempt {job.attempt}: {reason.message}", now, warning=True)
    announce_jobs([job], now)
    cycle_requests.request()
    transaction.on_commit(partial(_count_evicted, job, outcome, reason), robust=True)
    return True


@transaction.atomic
def fail(job: Job, reason: Reason, now: datetime) -> bool:
    """Ends a job in a crash loop and withdraws its copy. Returns False if the job has left that attempt already."""
    current = Job.objects.filter(pk=job.pk, attempt=job.attempt, state__in=Job.ON_MEMBER, deleting_at__isnull=True)
    if not lock_jobs(current):
        return False
    reason = replace(reason, cause=evidence.determine(job, job.attempt, Outcome.FAILED, now))
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
    """Which of its budgets the job has used up, in words. Empty if the job may be tried again."""
    attempts = Attempt.objects.filter(job=job, ended_at__isnull=False)
    rows = attempts.values_list("cluster_name", "outcome", "ended_at", "cause", "evidence")
    past = [
        Past(cluster, outcome, at, cause, left_lost_nodes=len(lost_nodes(pods)))
        for cluster, outcome, at, cause, pods in rows
        if at
    ]
    spec, limits = snapshot.spec_of(job), settings.CONVOY_FAILOVER
    most = spec.max_attempts or limits.max_attempts
    budgets = {Cause.CODE_ERROR: limits.max_code_errors, Cause.OUT_OF_MEMORY: limits.max_out_of_memory}
    budgets = {cause: min(count, most) for cause, count in budgets.items()} | dict(spec.failure_budgets)
    return rules.budget_spent(past, most, budgets)


def _give_up(job: Job, final: Reason, now: datetime, ended: Sequence[int], *, event: str = "AttemptsExhausted") -> None:
    """Ends the job. Its copy may still run: quota and hold are released once its pods are deleted (invariants I2, I6)."""
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
    """Whether the policy starts jobs through a queue only, so that a job that leaves its cluster is queued again."""
    return snapshot.spec_of(job).suspended


def _requeue(job: Job, purge: PurgeMode, now: datetime) -> None:
    """Puts the job back to its former position in its queue."""
    transitions.enter(job, JobEvent.REQUEUED)
    job.save(update_fields=["state"])
    _purge(job, purge, now)
    charges.release(now, [job.uid])


def _purge(job: Job, mode: PurgeMode, now: datetime) -> None:
    works_of_attempt = Work.objects.filter(job_uid=job.uid, attempt=job.attempt)
    if mode is PurgeMode.DIRECTLY:
        works.withdraw(job, now)
    elif mode is PurgeMode.NEVER and transitions.move_works(works_of_attempt, WorkEvent.KEPT):
        works.release_hold(job.uid, job.attempt, now)


def after_removal(work: Work, now: datetime) -> None:
    """Handles the removal of a copy: works of the job that waited for it become due, and its quota charge may be released."""
    waiting = Work.objects.filter(job_uid=work.job_uid, state=State.PENDING)
    for pk in list(waiting.values_list("pk", flat=True)):
        Work.objects.filter(pk=pk).update(due_at=now)
        events.enqueue("jobs.push", pk)
    charges.release(now, [work.job_uid])
    job = Job.objects.filter(uid=work.job_uid).first()
    if job is not None and job.deleting_at is not None:
        finish_deletion(job, now)
    elif job is not None and (over := other_copies.end_of(job, work)):
        record_event(job, other_copies.OVER, over, now)
    cycle_requests.request()


@transaction.atomic
def finish_deletion(job: Job, now: datetime) -> bool:
    """Deletes the rows of a job that is being deleted once all its copies are removed. Returns False before that."""
    lock_owners([job.uid])
    if Work.objects.filter(job_uid=job.uid).exclude(state=State.GONE).exists():
        return False
    Work.objects.filter(job_uid=job.uid).delete()
    Hold.objects.filter(job_uid=job.uid).delete()
    deleted_use.keep(job, now)
    usage_spans.keep(job, now)
    dependencies.remember(job)
    deletion = change(job, journal.Action.DELETED)
    DeletedJob.objects.get_or_create(uid=job.uid, defaults={"at": now, "runs": runs.as_stored(job, now)})
    if Job.objects.filter(pk=job.pk, deleting_at__isnull=False).delete()[0]:
        events.announce([deletion], now)
    cycle_requests.request()
    return True
