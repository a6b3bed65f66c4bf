"""Applies members' reports to the shares of divided jobs: the rules of `jobs.services.follow.status`, for each share.

The caller has locked the job's row. All reports of a current share count. For a share that was lost, or whose job was stopped,
only its success counts, and only as long as its replicas have not been placed elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from fleet.changes import events
from jobs.core.division import shares as parts
from jobs.core.division.shares import Share
from jobs.core.life.jobs import DIVIDED
from jobs.core.life.shares import ShareEvent, ShareState
from jobs.core.reasons import Code, Reason
from jobs.events import record_event
from jobs.kinds import registry
from jobs.kinds.base import Manifest, Phase, State
from jobs.models import Attempt, Job
from jobs.services.failover import crash_loops, division, evidence, shares
from jobs.services.failover.crash_loops import CrashLoop
from jobs.services.follow import notices, refusals
from jobs.services.follow.status_batch import StatusBatch
from jobs.snapshot import spec_of


@dataclass(frozen=True, slots=True)
class PodsSeen:
    """The observed pods of one share."""

    running: int = 0
    created: int = 0
    """The number of pods that have not ended."""
    loop: CrashLoop | None = None


def counts(job: Job, attempt: int, *, succeeded: bool = False) -> bool:
    """Whether reports of that attempt apply to the job: it is a current share, or a lost one that may still be regained."""
    share = parts.find(job.shares, attempt)
    if share is None:
        return False
    if share.state is not ShareState.LOST:
        return True
    return (succeeded or job.state == Job.State.MOVING) and shares.may_return(job, share)


def report_copy(job: Job, attempt: int, copy: Manifest, pods: PodsSeen, batch: StatusBatch) -> None:
    """Applies the copy of one share. A success of what the fleet had stopped ends that attempt, and is not the share's."""
    status = copy.get("status") or {}
    phase = registry.kind_of(job.api_version, job.kind).read_status(status, 0).phase
    if notices.is_answer(batch.asked_to_stop.get((job.uid, attempt)), phase):
        batch.timeline += notices.note_stopped(job, attempt, phase, batch.now)
    else:
        report(job, attempt, status, pods, batch.now)


def report(job: Job, attempt: int, status: Manifest | None, pods: PodsSeen, now: datetime) -> None:
    """Applies a member's report to one share. ``status`` is None when only the pods have changed."""
    share = parts.find(job.shares, attempt)
    if share is None or job.finished or share.state is ShareState.SUCCEEDED:
        return
    status = dict(share.status) if status is None else status
    state = registry.kind_of(job.api_version, job.kind).read_status(status, pods.running)
    if state.phase is Phase.SUCCEEDED:
        division.succeed(job, share, status, state.message, now)
        return
    if job.suspended or job.state not in DIVIDED:
        return
    if share.state is ShareState.LOST:
        regained = division.regain(job, share, now) if state.phase is Phase.RUNNING else None
        if regained is None:
            return
        share = regained
    if state.phase is Phase.FAILED and spec_of(job).application_toleration_s is None:
        message = _with_cause(job, share, state.message or f"its share on {share.cluster} failed", now)
        reason = Reason(Code.FAILED, message)
        division.fail(job, replace(share, status=status), reason, now, copy_ended=True)
        return
    refusals.drop_obsolete(job, share, pods.created)
    share = _follow_crash_loop(job, share, _advanced(job, share, state, now), pods.loop, now)
    division.write(job, replace(share, status=status), now)


def report_pods(job: Job, pods: Mapping[int, PodsSeen], now: datetime) -> None:
    """Applies the current pods of each of these attempts to its share."""
    for attempt, seen in pods.items():
        report(job, attempt, None, seen, now)


def _advanced(job: Job, share: Share, state: State, now: datetime) -> Share:
    if state.phase is Phase.FAILED:
        if share.state is not ShareState.BACKOFF:
            failure = _with_cause(job, share, state.message or "no message", now)
            wait = spec_of(job).application_toleration_s or 0.0
            message = f"failed on {share.cluster}: {failure}; the share moves after {wait:g} s"
            record_event(job, "InterpretHealth", message, now, warning=True)
            events.enqueue("jobs.check_health", countdown_s=wait + 0.05)
        since = share.unhealthy_since or now.isoformat()
        return parts.after(share, ShareEvent.FAILED_IN_MEMBER, unhealthy_since=since)
    if state.phase is Phase.RUNNING:
        Attempt.objects.filter(job=job, number=share.attempt, started_at__isnull=True).update(started_at=now)
        return parts.after(share, ShareEvent.RUNS, unhealthy_since="")
    return parts.after(share, ShareEvent.SENT) if share.state is ShareState.PLACED else share


def _with_cause(job: Job, share: Share, message: str, now: datetime) -> str:
    """The member's message and the cause of the share's failure. Also records the cause, while the pods still exist."""
    failure = evidence.failures([(job.uid, share.attempt)])[job.uid, share.attempt]
    evidence.record(job, share.attempt, failure, now)
    return "; ".join(part for part in (message, failure.summary) if part)


def _follow_crash_loop(job: Job, before: Share, share: Share, loop: CrashLoop | None, now: datetime) -> Share:
    """Marks a running share as unhealthy while its pods are in a crash loop. Returns the updated share."""
    if loop is None or share.state not in (ShareState.DISPATCHED, ShareState.RUNNING):
        return share
    if not before.unhealthy_since:
        wait = crash_loops.tolerated_s(job)
        consequence = "the job fails" if spec_of(job).application_toleration_s is None else "the share moves"
        message = f"{loop}; {consequence} unless its pods are stable within {wait:g} s"
        record_event(job, "CrashLoop", message, now, warning=True)
        events.enqueue("jobs.check_health", countdown_s=wait + 0.05)
    return replace(share, unhealthy_since=before.unhealthy_since or now.isoformat())
