"""The shares of a divided job as they are placed, sent, reported, lost and regained; and what the whole job is by them.

The job's row holds its shares, so a change of one locks the row. Works carry out what is decided here; no member is
touched. A share is an attempt: the rules of attempts (holds, works, history, fencing) apply to each share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from django.db import transaction

from fleet.changes import events
from jobs.core.division import shares as parts
from jobs.core.division.shares import Share, ShareState
from jobs.core.failover.rules import Outcome, PurgeMode
from jobs.core.life.jobs import JobEvent
from jobs.core.life.works import WorkEvent
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs, record_event
from jobs.kinds import registry
from jobs.kinds.base import Manifest, Phase, State
from jobs.models import Attempt, Job, Work
from jobs.services.failover import evidence, failover, returns, shares
from jobs.services.lifecycle import charges, cycle_requests, transitions, works
from jobs.snapshot import spec_of

_MAY_LEAVE = (*Job.ON_MEMBER, Job.State.MOVING)
_FOLLOWED = (*_MAY_LEAVE, Job.State.RECLAIMING)


def share_of(job: Job, attempt: int) -> Share | None:
    """The share that an attempt of the job is to run."""
    return parts.find_live_share(parts.of_stored(job.shares), attempt)


def has_share(job: Job, attempt: int) -> bool:
    """Whether that attempt is a share of the job, or was one that may come back."""
    share = next((each for each in parts.of_stored(job.shares) if each.attempt == attempt), None)
    if share is None:
        return False
    return share.state is not ShareState.LOST or (
        job.state == Job.State.MOVING and shares.missing(job)[0] >= share.had[0] > 0
    )


@transaction.atomic
def sent(job: Job, attempt: int, now: datetime) -> bool:
    """The member has the share's copy; False when that was recorded already, or the share has gone on since."""
    fresh = _locked(job)
    share = share_of(fresh, attempt) if fresh else None
    if fresh is None or share is None or share.state is not ShareState.PLACED:
        return False
    _write(fresh, replace(share, state=ShareState.DISPATCHED), now)
    return True


def report(job: Job, attempt: int, status: Manifest | None, running: int, now: datetime) -> None:
    """Takes over a member's report of one share; the job is locked by the caller. No status: only its pods changed."""
    share = next(each for each in parts.of_stored(job.shares) if each.attempt == attempt)
    if job.state not in _FOLLOWED or job.suspended or share.state is ShareState.SUCCEEDED:
        return
    status = dict(share.status) if status is None else status
    state = registry.kind_of(job.api_version, job.kind).read_status(status, running)
    if job.state == Job.State.RECLAIMING and state.phase is not Phase.SUCCEEDED:
        return
    if share.state is ShareState.LOST:
        if state.phase not in (Phase.RUNNING, Phase.SUCCEEDED) or not _reopened(job, attempt, state.phase, now):
            return
        share = parts.regained(share)
        record_event(job, "StaysOnCluster", f"{share.cluster} is back before another place was found", now)
    if state.phase is Phase.FAILED and spec_of(job).application_toleration_s is None:
        message = _with_cause(job, share, state.message or f"its share on {share.cluster} failed")
        reason = Reason(Code.FAILED, message)
        _fail(job, replace(share, status=status), reason, now, copy_ended=True)
        return
    _write(job, replace(_advanced(job, share, state, now), status=status), now)


def report_pods(job: Job, running: Mapping[int, int], now: datetime) -> None:
    """Records how many pods of each of these attempts run now."""
    for attempt, count in running.items():
        report(job, attempt, None, count, now)


def _reopened(job: Job, attempt: int, phase: Phase, now: datetime) -> bool:
    work = returns.copy_of(job, attempt, succeeded=phase is Phase.SUCCEEDED)
    if work is None or not (phase is Phase.SUCCEEDED or returns.may_stay(job, work.cluster, now)):
        return False
    ended = Attempt.objects.filter(job=job, number=attempt, outcome=Outcome.LOST)
    return ended.update(ended_at=None, outcome="", message="", cause="", evidence=None) > 0


def _advanced(job: Job, share: Share, state: State, now: datetime) -> Share:
    if state.phase is Phase.SUCCEEDED:
        _end(job, [share.attempt], Outcome.SUCCEEDED, state.message, now)
        return replace(share, state=ShareState.SUCCEEDED, unhealthy_since="")
    if state.phase is Phase.FAILED:
        if share.state is not ShareState.BACKOFF:
            failure = _with_cause(job, share, state.message or "no message")
            message = f"failed on {share.cluster}: {failure}; its share moves when the policy says"
            record_event(job, "InterpretHealth", message, now, warning=True)
            wait = spec_of(job).application_toleration_s or 0.0
            events.enqueue("jobs.check_health", countdown_s=wait + 0.05)
        return replace(share, state=ShareState.BACKOFF, unhealthy_since=share.unhealthy_since or now.isoformat())
    if state.phase is Phase.RUNNING:
        Attempt.objects.filter(job=job, number=share.attempt, started_at__isnull=True).update(started_at=now)
        return replace(share, state=ShareState.RUNNING, unhealthy_since="")
    return replace(share, state=ShareState.DISPATCHED) if share.state is ShareState.PLACED else share


def _with_cause(job: Job, share: Share, message: str) -> str:
    """The member's message with the cause of the share's failure, which is recorded while its pods are there."""
    failure = evidence.failures([(job.uid, share.attempt)])[job.uid, share.attempt]
    evidence.record(job, share.attempt, failure)
    return "; ".join(part for part in (message, failure.summary) if part)


@transaction.atomic
def leave(
    job: Job, attempt: int, outcome: Outcome, reason: Reason, now: datetime, *, purge: PurgeMode = PurgeMode.GRACEFULLY
) -> bool:
    """Takes one share off its cluster, to wait for another one; the others stay. False when it had left already."""
    fresh = _locked(job)
    share = share_of(fresh, attempt) if fresh else None
    if fresh is None or share is None or fresh.state not in _MAY_LEAVE or fresh.suspended or fresh.deleting_at:
        return False
    reason = replace(reason, cause=evidence.note(fresh, attempt, outcome))
    _end(fresh, [attempt], outcome, reason.message, now, holds=False)
    if spent := failover.budget_spent(fresh):
        _fail(fresh, share, failover.exhausted(spent, reason), now, copy_ended=share.state is ShareState.BACKOFF)
        return True
    record_event(
        fresh, "Moving", f"Share of {share.replicas} leaves {share.cluster}: {reason.message}", now, warning=True
    )
    transitions.enter(fresh, JobEvent.SHARE_LEFT)
    fresh.reason = reason.as_json()
    _write(fresh, parts.as_lost(share), now)
    if fresh.state == Job.State.MOVING:
        _purge(fresh, attempt, purge, now)
    else:
        _purge(fresh, attempt, PurgeMode.DIRECTLY, now)
    cycle_requests.request()
    return True


def _write(job: Job, share: Share, now: datetime) -> None:
    """Stores the share and what the job is by it; nothing when both are as they were."""
    before = [getattr(job, name) for name in shares.SAVED]
    shares.update_job_state(job, parts.replace_share(parts.of_stored(job.shares), share), now)
    if before == [getattr(job, name) for name in shares.SAVED]:
        return
    job.save(update_fields=shares.SAVED)
    announce_jobs([job], now)
    if job.finished:
        cycle_requests.request()


def _fail(job: Job, share: Share, reason: Reason, now: datetime, *, copy_ended: bool) -> None:
    """One share has failed for good, and with it the job: the others are stopped, and then its quota is free."""
    stored = parts.replace_share(parts.of_stored(job.shares), share)
    others = [n for n in parts.counting(job.shares, job.attempt) if n != share.attempt]
    ended = [each.attempt for each in stored if each.state in (ShareState.SUCCEEDED, ShareState.BACKOFF)]
    ended = [n for n in ended if n != share.attempt] + ([share.attempt] if copy_ended else [])
    reason = replace(reason, cause=evidence.note(job, share.attempt, Outcome.FAILED))
    _end(job, [share.attempt], Outcome.FAILED, reason.message, now, holds=False)
    _end(job, others, Outcome.FAILED, f"the share on {share.cluster} failed", now, holds=False)
    works.withdraw_live(job, now, ended=ended)
    job.shares = parts.stored(stored)
    shares.finish(job, JobEvent.SHARE_FAILED, reason, now)
    job.save(update_fields=shares.SAVED)
    record_event(job, "Failed", reason.message, now, warning=True)
    announce_jobs([job], now)
    charges.release(now, [job.uid])
    cycle_requests.request()


def _end(
    job: Job, numbers: Sequence[int], outcome: Outcome, message: str, now: datetime, *, holds: bool = True
) -> None:
    """Closes attempts; with ``holds``, what they held is given back, for their pods have ended."""
    rows = Attempt.objects.filter(job=job, number__in=numbers, ended_at__isnull=True)
    rows.update(ended_at=now, outcome=outcome, message=message[:500])
    for number in numbers if holds else ():
        works.release_hold(job.uid, number, now)


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
    """A share's copy was deleted in its member, and not by Convoy."""
    share = share_of(job, attempt)
    if share is None or job.state not in _MAY_LEAVE:
        return
    reason = Reason(Code.COPY_VANISHED, f"the copy on {share.cluster} was deleted there, not by Convoy")
    leave(job, attempt, Outcome.VANISHED, reason, now, purge=PurgeMode.DIRECTLY)
