"""The shares of a divided job as they are sent, ended, lost and regained; and what the whole job is by them.

The job's row holds its shares, so a change of one locks the row. Works carry out what is decided here; no member is
touched. A share is an attempt: the rules of attempts (holds, works, history, fencing) apply to each share. What members
report of shares is applied by `jobs.services.follow.division_status`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction

from fleet.models import Pod
from jobs.core.division import shares as parts
from jobs.core.division.shares import Share
from jobs.core.failover.rules import Outcome, PurgeMode
from jobs.core.life.jobs import DIVIDED, JobEvent
from jobs.core.life.shares import ShareEvent, ShareState
from jobs.core.life.works import WorkEvent
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs, record_event
from jobs.models import Attempt, Job, Work
from jobs.services.failover import evidence, failover, returns, shares
from jobs.services.lifecycle import charges, cycle_requests, transitions, works


def share_of(job: Job, attempt: int) -> Share | None:
    """The share that an attempt of the job is to run."""
    return parts.find_live_share(parts.of_stored(job.shares), attempt)


@transaction.atomic
def sent(job: Job, attempt: int, now: datetime) -> bool:
    """The member has the share's copy; False when that was recorded already, or the share has gone on since."""
    fresh = _locked(job)
    share = share_of(fresh, attempt) if fresh else None
    if fresh is None or share is None or share.state is not ShareState.PLACED:
        return False
    write(fresh, parts.after(share, ShareEvent.SENT), now)
    return True


def regain(job: Job, share: Share, now: datetime) -> Share | None:
    """The lost share, whose copy runs on, as one that stands; None when it was not left for its cluster's sake."""
    work = returns.copy_of(job, share.attempt)
    if work is None or not returns.may_stay(job, work.cluster, now):
        return None
    ended = Attempt.objects.filter(job=job, number=share.attempt, outcome=Outcome.LOST)
    if not ended.update(ended_at=None, outcome="", message="", cause="", evidence=None):
        return None
    record_event(job, "StaysOnCluster", f"{share.cluster} is back before another place was found", now)
    return parts.regained(share, ShareEvent.REGAINED)


def succeed(job: Job, share: Share, status: Mapping[str, Any], message: str, now: datetime) -> None:
    """A share has succeeded: believed whatever it was left or its job was stopped for, for work that is done is not done again.

    What it held is free. Once the job has ended, copies that were to be suspended have nothing left to stop.
    """
    if share.state is ShareState.LOST:
        share = parts.regained(share, ShareEvent.REGAINED)
    works.correct_outcome(job, share.attempt, Outcome.SUCCEEDED, message, now)
    works.release_hold(job.uid, share.attempt, now)
    write(job, parts.after(share, ShareEvent.SUCCEEDED, status=dict(status), unhealthy_since=""), now)
    if job.finished:
        mine = Work.objects.filter(job_uid=job.uid)
        transitions.move_works(mine, WorkEvent.SUCCEEDED, **works.UNCLAIMED)


@transaction.atomic
def leave(
    job: Job, attempt: int, outcome: Outcome, reason: Reason, now: datetime, *, purge: PurgeMode = PurgeMode.GRACEFULLY
) -> bool:
    """Takes one share off its cluster, to wait for another one; the others stay. False when it had left already."""
    fresh = _locked(job)
    share = share_of(fresh, attempt) if fresh else None
    if fresh is None or share is None or fresh.state not in DIVIDED or fresh.suspended or fresh.deleting_at:
        return False
    reason = replace(reason, cause=evidence.note(fresh, attempt, outcome))
    _end(fresh, [attempt], outcome, reason.message, now)
    if spent := failover.budget_spent(fresh):
        fail(fresh, share, failover.exhausted(spent, reason), now, copy_ended=share.state is ShareState.BACKOFF)
        return True
    record_event(
        fresh, "Moving", f"Share of {share.replicas} leaves {share.cluster}: {reason.message}", now, warning=True
    )
    transitions.enter(fresh, JobEvent.SHARE_LEFT)
    fresh.reason = reason.as_json()
    write(fresh, parts.as_lost(share, ShareEvent.LEFT), now)
    if fresh.state == Job.State.MOVING:
        _purge(fresh, attempt, purge, now)
    else:
        _purge(fresh, attempt, PurgeMode.DIRECTLY, now)
    cycle_requests.request()
    return True


def write(job: Job, share: Share, now: datetime) -> None:
    """Stores the share and what the job is by it; nothing when both are as they were."""
    before = [getattr(job, name) for name in shares.SAVED]
    shares.update_job_state(job, parts.replace_share(parts.of_stored(job.shares), share), now)
    if before == [getattr(job, name) for name in shares.SAVED]:
        return
    job.save(update_fields=shares.SAVED)
    announce_jobs([job], now)
    if job.finished:
        cycle_requests.request()


def fail(job: Job, share: Share, reason: Reason, now: datetime, *, copy_ended: bool) -> None:
    """One share has failed for good, and with it the job: the others are stopped, and then its quota is free."""
    stored = parts.replace_share(parts.of_stored(job.shares), share)
    others = [n for n in parts.counting(job.shares, job.attempt) if n != share.attempt]
    ended = [each.attempt for each in stored if each.state in (ShareState.SUCCEEDED, ShareState.BACKOFF)]
    ended = [n for n in ended if n != share.attempt] + ([share.attempt] if copy_ended else [])
    reason = replace(reason, cause=evidence.note(job, share.attempt, Outcome.FAILED))
    _end(job, [share.attempt], Outcome.FAILED, reason.message, now)
    _end(job, others, Outcome.FAILED, f"the share on {share.cluster} failed", now)
    works.withdraw_live(job, now, ended=ended)
    job.shares = parts.stored(stored)
    shares.finish(job, JobEvent.SHARE_FAILED, reason, now)
    job.save(update_fields=shares.SAVED)
    record_event(job, "Failed", reason.message, now, warning=True)
    announce_jobs([job], now)
    charges.release(now, [job.uid])
    cycle_requests.request()


def _end(job: Job, numbers: Sequence[int], outcome: Outcome, message: str, now: datetime) -> None:
    """Closes attempts. What they held stays held until their copies are gone."""
    rows = Attempt.objects.filter(job=job, number__in=numbers, ended_at__isnull=True)
    rows.update(ended_at=now, outcome=outcome, message=message[:500])


@transaction.atomic
def end_unhealthy(job: Job, attempt: int, reason: Reason, now: datetime) -> bool:
    """The job fails by a share that runs and cannot succeed, for its policy knows no failover; False when that has left."""
    fresh = _locked(job)
    share = share_of(fresh, attempt) if fresh else None
    if fresh is None or share is None or fresh.state not in DIVIDED or fresh.suspended or fresh.deleting_at:
        return False
    fail(fresh, share, reason, now, copy_ended=False)
    return True


@transaction.atomic
def recover(job: Job, attempt: int, now: datetime) -> None:
    """The pods of a share that restarted again and again keep running: no report of its member comes to say so."""
    fresh = _locked(job)
    share = share_of(fresh, attempt) if fresh else None
    if fresh is not None and share is not None and share.state is not ShareState.BACKOFF and fresh.state in DIVIDED:
        write(fresh, replace(share, unhealthy_since=""), now)


def _locked(job: Job) -> Job | None:
    rows = Job.objects.select_related("policy", "cluster").filter(pk=job.pk)
    return rows.select_for_update(of=("self",), no_key=True).first()


def _purge(job: Job, attempt: int, mode: PurgeMode, now: datetime) -> None:
    works_of_attempt = Work.objects.filter(job_uid=job.uid, attempt=attempt)
    if mode is PurgeMode.NEVER and transitions.move_works(works_of_attempt, WorkEvent.KEPT):
        works.release_hold(job.uid, attempt, now)
    elif mode is PurgeMode.DIRECTLY:
        works.withdraw_attempt(job, attempt, now)


@transaction.atomic
def copy_vanished(job: Job, attempt: int, now: datetime) -> None:
    """A share's copy was deleted in its member, and not by Convoy: its work ends, and it moves unless its end is known."""
    fresh = _locked(job)
    share = parts.find(fresh.shares, attempt) if fresh else None
    if fresh is None or share is None:
        return
    if share.is_live and not fresh.finished and _pods_succeeded(fresh, share):
        message = "its copy was deleted after all of its pods had succeeded"
        succeed(fresh, share, share.status, message, now)
    elif share.is_live and share.state is not ShareState.BACKOFF and fresh.state in DIVIDED:
        reason = Reason(Code.COPY_VANISHED, f"the copy on {share.cluster} was deleted there, not by Convoy")
        leave(fresh, attempt, Outcome.VANISHED, reason, now, purge=PurgeMode.DIRECTLY)
    works.order(Work.objects.filter(job_uid=job.uid, attempt=attempt), WorkEvent.VANISHED, now)


def _pods_succeeded(job: Job, share: Share) -> bool:
    """Whether every pod the share has to run was last seen to have succeeded."""
    phases = list(Pod.objects.filter(job_uid=job.uid, attempt=share.attempt).values_list("phase", flat=True))
    return len(phases) >= max(share.replicas, share.completions) and set(phases) == {"Succeeded"}
