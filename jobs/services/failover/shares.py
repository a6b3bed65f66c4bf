"""Derives a divided job's state, status, reason and cluster from its shares. Only the job's row is written here.

The caller has locked the row and journals the change. A share is an attempt: see `jobs.services.failover.division`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from fleet.models import Cluster
from jobs.core.admission.plans import Placed
from jobs.core.division import shares as parts
from jobs.core.division.shares import Share
from jobs.core.failover.causes import Cause
from jobs.core.life.jobs import DIVIDED, JobEvent
from jobs.core.life.shares import ShareEvent, ShareState
from jobs.core.reasons import Code, Reason
from jobs.events import record_event
from jobs.kinds import registry
from jobs.models import Job
from jobs.services.lifecycle import transitions

SAVED = (
    "state", "status", "reason", "shares", "cluster", "unhealthy_since", "charge", "reclaim", "started_at", "finished_at",
)  # fmt: skip


def settle_placed(job: Job, placed: Placed, now: datetime) -> None:
    """Adds the newly placed shares to the job's shares. Removes the stored shares of a job that is no longer divided."""
    division = placed.gang.division
    if division is None:
        if job.shares:
            job.shares = []
            job.save(update_fields=["shares"])
        return
    pods = {share.cluster: share.pods for share in placed.placement.shares}
    new = parts.deal_shares(pods, division.completions, placed.gang.attempt + 1, ShareEvent.PLACED)
    update_job_state(job, [*([] if division.fresh else parts.of_stored(job.shares)), *new], now)
    job.save(update_fields=SAVED)


def stop(job: Job, now: datetime) -> None:
    """Stops all shares of a job that goes back to its queue. Their completions count; the rest is placed again."""
    if not job.shares:
        return
    stopped = [
        parts.as_lost(share, ShareEvent.STOPPED) if share.is_live else share for share in parts.of_stored(job.shares)
    ]
    update_job_state(job, stopped, now)
    job.save(update_fields=SAVED)


def may_return(job: Job, lost: Share) -> bool:
    """Whether the replicas of the lost share have not been placed elsewhere."""
    completions = parts.divisible(job.roles) or 0
    return parts.may_return(job.roles[0]["replicas"], completions, parts.of_stored(job.shares), lost)


def update_job_state(job: Job, shares: Sequence[Share], now: datetime) -> None:
    """Sets the job's shares and the fields that follow from them. Does not save the row."""
    kind = registry.kind_of(job.api_version, job.kind)
    current = [share for share in shares if share.state is not ShareState.LOST]
    lost = [dict(share.status) for share in shares if share.state is ShareState.LOST]
    job.shares = parts.stored(shares)
    job.status = kind.merge_statuses([dict(share.status) for share in current], lost)
    since = sorted(share.unhealthy_since for share in current if share.unhealthy_since)
    job.unhealthy_since = datetime.fromisoformat(since[0]) if since else None
    if job.state != Job.State.QUEUED:
        job.cluster = _largest(current)
    if missing(job) == (0, 0):
        _update_placed(job, current, now)


def missing(job: Job) -> tuple[int, int]:
    """How many pods and completions of the job are not in any current share."""
    total = parts.divisible(job.roles) or 0
    pods, completions = parts.missing(job.roles[0]["replicas"], total, parts.of_stored(job.shares))
    return (pods, completions) if pods else (0, 0)


def _largest(current: Sequence[Share]) -> Cluster | None:
    """The cluster with the most replicas, which lists show for a job on several clusters."""
    live = sorted((s for s in current if s.is_live), key=lambda s: (-s.replicas, s.cluster)) or list(current)
    return Cluster.objects.filter(name=live[0].cluster).first() if live else None


def _update_placed(job: Job, current: Sequence[Share], now: datetime) -> None:
    """Sets state and reason of a job all of whose shares are placed."""
    states = {share.state for share in current}
    summary = parts.summary(current)
    if states <= {ShareState.SUCCEEDED}:
        finish(job, JobEvent.SHARES_SUCCEEDED, None, now)
        record_event(job, "Succeeded", f"All shares succeeded: {summary}", now)
    elif job.state not in DIVIDED:
        return
    elif ShareState.BACKOFF in states:
        transitions.enter(job, JobEvent.SHARE_FAILED_IN_MEMBER)
        job.reason = Reason(Code.APPLICATION_UNHEALTHY, f"a share has failed: {summary}").as_json()
    elif ShareState.PLACED in states:
        transitions.enter(job, JobEvent.SHARES_PLACED)
        job.reason = _waiting_reason(job, current, Reason(Code.WAITING_FOR_MEMBER, f"shares are being sent: {summary}"))
    elif ShareState.DISPATCHED in states:
        transitions.enter(job, JobEvent.SHARES_SENT)
        job.reason = _waiting_reason(job, current, Reason(Code.WAITING_FOR_PODS, f"not every share runs: {summary}"))
    else:
        if job.state != Job.State.RUNNING:
            record_event(job, "Running", f"All shares run: {summary}", now)
        transitions.enter(job, JobEvent.SHARES_RUN)
        job.reason, job.started_at = _crash_loop_reason(current, summary), job.started_at or now


def _crash_loop_reason(current: Sequence[Share], summary: str) -> dict[str, Any] | None:
    """The reason of a running job of which a share is in a crash loop; None if there is no such share."""
    if not any(share.unhealthy_since for share in current):
        return None
    return Reason(Code.APPLICATION_UNHEALTHY, f"pods of a share restart repeatedly: {summary}").as_json()


def _waiting_reason(job: Job, current: Sequence[Share], reason: Reason) -> dict[str, Any]:
    """The reason of a job that waits for pods: refusals of members if there are any, else ``reason``."""
    waiting = {str(share.attempt) for share in current if share.state in (ShareState.PLACED, ShareState.DISPATCHED)}
    refused = {number: refusal for number, refusal in refusals_of(job).items() if number in waiting}
    return with_refusals(refused) if refused else reason.as_json()


def refusals_of(job: Job) -> dict[str, dict[str, Any]]:
    """Why members do not create the pods of shares, by attempt number."""
    return dict((job.reason or {}).get("shares") or {})


def with_refusals(refused: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The reason of a job with these refusals."""
    message = "; ".join(str(refused[number]["message"]) for number in sorted(refused, key=int))
    return {**Reason(Code.MEMBER_REFUSED, message, cause=Cause.REFUSED).as_json(), "shares": dict(refused)}


def finish(job: Job, event: JobEvent, reason: Reason | None, now: datetime) -> None:
    transitions.enter(job, event)
    job.reason, job.unhealthy_since = reason.as_json() if reason else None, None
    job.finished_at, job.started_at, job.reclaim = now, job.started_at or now, None
    if job.state == Job.State.SUCCEEDED:
        job.charge = None
