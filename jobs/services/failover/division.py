"""Changes the shares of a divided job: they are sent, succeed, fail, are lost, and are regained.

The shares are stored in the job's row, so every change locks it. No member is contacted here: works carry the decisions out. A
share is an attempt, so the rules of attempts (holds, works, history, fencing) apply to each share. Reports of members are
applied by `jobs.services.follow.division_status`.
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
from jobs.services.lifecycle import cycle_requests, transitions, works
from jobs.services.lifecycle.accounting import charges


def share_of(job: Job, attempt: int) -> Share | None:
    """The live share with that attempt number, if there is one."""
    return parts.find_live_share(parts.of_stored(job.shares), attempt)


@transaction.atomic
def sent(job: Job, attempt: int, now: datetime) -> bool:
    """Records that the member has the share's copy. Returns False if the share is no longer in state Placed."""
    locked = _locked(job)
    share = share_of(locked, attempt) if locked else None
    if locked is None or share is None or share.state is not ShareState.PLACED:
        return False
    write(locked, parts.after(share, ShareEvent.SENT), now)
    return True


def regain(job: Job, share: Share, now: datetime) -> Share | None:
    """Makes a lost share whose copy still runs a current one again, and returns it.

    None if the share did not leave because its cluster was lost or drained, or must still leave it.
    """
    work = returns.copy_of(job, share.attempt)
    if work is None or not returns.may_stay(job, work.cluster, now):
        return None
    ended = Attempt.objects.filter(job=job, number=share.attempt, outcome__in=returns.LEFT_THE_CLUSTER)
    if not ended.update(ended_at=None, outcome="", message="", **Attempt.NO_FAILURE):
        return None
    record_event(job, "StaysOnCluster", f"{share.cluster} recovered before the share was placed elsewhere", now)
    return parts.regained(share, ShareEvent.REGAINED)


def succeed(job: Job, share: Share, status: Mapping[str, Any], message: str, now: datetime) -> None:
    """Records that a share has succeeded, and releases its hold.

    This counts even if the share was lost or its job was stopped before, so that completed work is not repeated. When the whole
    job has ended, works that were to suspend copies have nothing left to stop.
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
    """Makes one share leave its cluster and wait for another one; the other shares stay. False if it had left already."""
    locked = _locked(job)
    share = share_of(locked, attempt) if locked else None
    if locked is None or share is None or locked.state not in DIVIDED or locked.suspended or locked.deleting_at:
        return False
    reason = replace(reason, cause=evidence.determine(locked, attempt, outcome, now))
    _end(locked, [attempt], outcome, reason.message, now)
    if spent := failover.budget_spent(locked):
        fail(locked, share, failover.exhausted(spent, reason), now, copy_ended=share.state is ShareState.BACKOFF)
        return True
    record_event(
        locked, "Moving", f"Share of {share.replicas} leaves {share.cluster}: {reason.message}", now, warning=True
    )
    transitions.enter(locked, JobEvent.SHARE_LEFT)
    locked.reason = reason.as_json()
    write(locked, parts.as_lost(share, ShareEvent.LEFT), now)
    if locked.state == Job.State.MOVING:
        _purge(locked, attempt, purge, now)
    else:
        # No replacement will be placed, so nothing would trigger a later removal.
        _purge(locked, attempt, PurgeMode.DIRECTLY, now)
    cycle_requests.request()
    return True


def write(job: Job, share: Share, now: datetime) -> None:
    """Stores the share and the state of the job that follows from its shares. Does nothing if neither has changed."""
    before = [getattr(job, name) for name in shares.SAVED]
    shares.update_job_state(job, parts.replace_share(parts.of_stored(job.shares), share), now)
    if before == [getattr(job, name) for name in shares.SAVED]:
        return
    job.save(update_fields=shares.SAVED)
    announce_jobs([job], now)
    if job.finished:
        cycle_requests.request()


def fail(job: Job, share: Share, reason: Reason, now: datetime, *, copy_ended: bool) -> None:
    """Ends the job because one of its shares has finally failed: the other shares are stopped, which frees their quota.

    ``copy_ended`` says whether the copy of the failed share has ended by itself.
    """
    stored = parts.replace_share(parts.of_stored(job.shares), share)
    others = [n for n in parts.counting(job.shares, job.attempt) if n != share.attempt]
    ended = [other.attempt for other in stored if other.state in (ShareState.SUCCEEDED, ShareState.BACKOFF)]
    ended = [n for n in ended if n != share.attempt] + ([share.attempt] if copy_ended else [])
    reason = replace(reason, cause=evidence.determine(job, share.attempt, Outcome.FAILED, now))
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
    """Closes attempts. Their holds remain until their copies are removed."""
    rows = Attempt.objects.filter(job=job, number__in=numbers, ended_at__isnull=True)
    rows.update(ended_at=now, outcome=outcome, message=message[:500])


@transaction.atomic
def end_unhealthy(job: Job, attempt: int, reason: Reason, now: datetime) -> bool:
    """Ends the job because a share is in a crash loop and the policy has no application failover.

    False if the share has left its cluster.
    """
    locked = _locked(job)
    share = share_of(locked, attempt) if locked else None
    if locked is None or share is None or locked.state not in DIVIDED or locked.suspended or locked.deleting_at:
        return False
    fail(locked, share, reason, now, copy_ended=False)
    return True


@transaction.atomic
def recover(job: Job, attempt: int, now: datetime) -> None:
    """Records that the crash loop of a share is over. The member sends no report when that happens."""
    locked = _locked(job)
    share = share_of(locked, attempt) if locked else None
    if locked is not None and share is not None and share.state is not ShareState.BACKOFF and locked.state in DIVIDED:
        write(locked, replace(share, unhealthy_since=""), now)


@transaction.atomic
def count_unhealthy_from(job: Job, now: datetime) -> None:
    """For shares that are unhealthy since a time that is yet to come, because the clock was set back: they are so since now."""
    locked = _locked(job)
    for share in parts.of_stored(locked.shares) if locked else ():
        if locked is not None and share.unhealthy_since and datetime.fromisoformat(share.unhealthy_since) > now:
            write(locked, replace(share, unhealthy_since=now.isoformat()), now)


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
    """Handles the deletion of a share's copy by another client: its work ends.

    The share moves to another cluster, unless its pods show that it has succeeded or its failure is already recorded.
    """
    locked = _locked(job)
    share = parts.find(locked.shares, attempt) if locked else None
    if locked is None or share is None:
        return
    if share.is_live and not locked.finished and _pods_succeeded(locked, share):
        message = "its copy was deleted after all of its pods had succeeded"
        succeed(locked, share, share.status, message, now)
    elif share.is_live and share.state is not ShareState.BACKOFF and locked.state in DIVIDED:
        reason = Reason(Code.COPY_VANISHED, f"the copy on {share.cluster} was deleted there, not by Convoy")
        leave(locked, attempt, Outcome.VANISHED, reason, now, purge=PurgeMode.DIRECTLY)
    works.order(Work.objects.filter(job_uid=job.uid, attempt=attempt), WorkEvent.VANISHED, now)


def _pods_succeeded(job: Job, share: Share) -> bool:
    """Whether every pod of the share has succeeded, by the last report of each."""
    phases = list(Pod.objects.filter(job_uid=job.uid, attempt=share.attempt).values_list("phase", flat=True))
    return len(phases) >= max(share.replicas, share.completions) and set(phases) == {"Succeeded"}
