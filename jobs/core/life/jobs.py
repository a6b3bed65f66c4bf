"""The state machine of a job. A divided job has events of its own, because its state follows from its shares."""

from enum import StrEnum

from jobs.core.life.machine import Machine, Transition


class JobState(StrEnum):
    QUEUED = "Queued"
    PLACED = "Placed"
    DISPATCHED = "Dispatched"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    SUSPENDED = "Suspended"
    RECLAIMING = "Reclaiming"
    MOVING = "Moving"
    BACKOFF = "Backoff"


class JobEvent(StrEnum):
    SUBMITTED = "Submitted"
    SUBMITTED_SUSPENDED = "SubmittedSuspended"
    PLACED = "Placed"
    SENT = "Sent"
    """The member has the copy, but not all pods run yet."""
    RUNS = "Runs"
    FAILED_IN_MEMBER = "FailedInMember"
    """The copy has failed. The job moves once the policy's toleration is over."""
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    GAVE_UP = "GaveUp"
    """The job ends because its budget of attempts is used up, or because of a crash loop."""
    WAITED_TOO_LONG = "WaitedTooLong"
    """The job ends because it has waited for quota and room longer than it may."""
    TIMED_OUT = "TimedOut"
    """The job ends because it has run longer than its queue allows, or because its deadline has come."""
    LEFT = "Left"
    """The job leaves its cluster, and waits for another one."""
    REQUEUED = "Requeued"
    """After LEFT: the policy starts jobs through a queue only, so the job goes back to it."""
    RETURNED_RUNNING = "ReturnedRunning"
    """The copy of the former attempt still runs, or has succeeded: that attempt is current again."""
    RETURNED = "Returned"
    """Like RETURNED_RUNNING, for an attempt whose pods had not all run yet."""
    ADOPTED = "Adopted"
    """After restoring a backup: a copy that is newer than the database becomes the current attempt."""
    EVICTED = "Evicted"
    """The job must stop, to free capacity or quota."""
    MADE_ROOM = "MadeRoom"
    """The evicted job has stopped, and is queued again."""
    SUSPENDED = "Suspended"
    RESUMED = "Resumed"
    RESTARTED = "Restarted"
    """Its spec changed while it had a copy: the next attempt is placed where the former one is."""
    SHARE_LEFT = "ShareLeft"
    SHARES_PLACED = "SharesPlaced"
    SHARES_SENT = "SharesSent"
    SHARES_RUN = "SharesRun"
    SHARE_FAILED_IN_MEMBER = "ShareFailedInMember"
    SHARES_SUCCEEDED = "SharesSucceeded"
    SHARE_FAILED = "ShareFailed"


_S = JobState
WAITING = frozenset({_S.QUEUED, _S.MOVING})
"""States in which the scheduler tries to place the job."""
ON_MEMBER = frozenset({_S.PLACED, _S.DISPATCHED, _S.RUNNING, _S.BACKOFF})
"""States with a current attempt. In Backoff its copy has failed, and the toleration is not over yet."""
FINISHED = frozenset({_S.SUCCEEDED, _S.FAILED})
LIVE = frozenset(_S) - FINISHED
DIVIDED = ON_MEMBER | {_S.MOVING}
"""States of a divided job in which reports for its shares are applied. In Moving, some shares are missing."""
_LEFT_BEHIND = frozenset({*WAITING, _S.SUSPENDED, _S.RECLAIMING})
"""States of a job whose latest attempt is closed, although its copy may still exist."""


def _rule(target: JobState, sources: frozenset[JobState], *writers: str) -> Transition:
    return Transition(frozenset(state.value for state in sources), target.value, writers)


JOB = Machine(
    states=tuple(state.value for state in JobState),
    terminal=frozenset(state.value for state in FINISHED),
    transitions={
        JobEvent.SUBMITTED: _rule(_S.QUEUED, frozenset(), "submission.submit"),
        JobEvent.SUBMITTED_SUSPENDED: _rule(_S.SUSPENDED, frozenset(), "submission.submit"),
        JobEvent.PLACED: _rule(_S.PLACED, WAITING, "scheduling.decisions.apply"),
        JobEvent.SENT: _rule(_S.DISPATCHED, frozenset({_S.PLACED, _S.DISPATCHED}), "dispatch.dispatcher", "follow.status"),
        JobEvent.RUNS: _rule(_S.RUNNING, ON_MEMBER, "follow.status"),
        JobEvent.FAILED_IN_MEMBER: _rule(_S.BACKOFF, ON_MEMBER, "follow.status"),
        # From every live state, so that completed work is not repeated: the attempt that succeeded may have been left before,
        # and the job may be Placed again already.
        JobEvent.SUCCEEDED: _rule(_S.SUCCEEDED, LIVE, "follow.status"),
        JobEvent.FAILED: _rule(_S.FAILED, ON_MEMBER, "follow.status"),
        JobEvent.LEFT: _rule(_S.MOVING, ON_MEMBER, "failover.failover"),
        JobEvent.REQUEUED: _rule(_S.QUEUED, frozenset({_S.MOVING}), "failover.failover"),
        JobEvent.GAVE_UP: _rule(_S.FAILED, DIVIDED, "failover.failover"),
        JobEvent.WAITED_TOO_LONG: _rule(_S.FAILED, WAITING, "follow.timeouts.max_wait"),
        JobEvent.TIMED_OUT: _rule(_S.FAILED, LIVE, "follow.timeouts.time_limits"),
        JobEvent.RETURNED_RUNNING: _rule(_S.RUNNING, _LEFT_BEHIND, "failover.returns"),
        JobEvent.RETURNED: _rule(_S.DISPATCHED, _LEFT_BEHIND, "failover.returns"),
        JobEvent.ADOPTED: _rule(
            _S.DISPATCHED, ON_MEMBER | WAITING | {_S.RECLAIMING}, "failover.restored"
        ),
        # From Reclaiming too, because a later plan may evict the job for a second preemptor as well.
        JobEvent.EVICTED: _rule(_S.RECLAIMING, ON_MEMBER | WAITING | {_S.RECLAIMING}, "scheduling.decisions.preemption"),
        JobEvent.MADE_ROOM: _rule(_S.QUEUED, frozenset({_S.RECLAIMING}), "scheduling.decisions.preemption"),
        JobEvent.SUSPENDED: _rule(_S.SUSPENDED, LIVE - {_S.SUSPENDED}, "submission.changes.actions"),
        JobEvent.RESUMED: _rule(_S.QUEUED, frozenset({_S.SUSPENDED}), "submission.changes.actions"),
        JobEvent.RESTARTED: _rule(
            _S.PLACED, frozenset({_S.DISPATCHED, _S.RUNNING, _S.BACKOFF}), "submission.changes.restarts"
        ),
        JobEvent.SHARE_LEFT: _rule(_S.MOVING, DIVIDED, "failover.division"),
        JobEvent.SHARES_PLACED: _rule(_S.PLACED, DIVIDED, "failover.shares"),
        JobEvent.SHARES_SENT: _rule(_S.DISPATCHED, DIVIDED, "failover.shares"),
        JobEvent.SHARES_RUN: _rule(_S.RUNNING, DIVIDED, "failover.shares"),
        JobEvent.SHARE_FAILED_IN_MEMBER: _rule(_S.BACKOFF, DIVIDED, "failover.shares"),
        JobEvent.SHARES_SUCCEEDED: _rule(_S.SUCCEEDED, LIVE, "failover.shares"),
        JobEvent.SHARE_FAILED: _rule(_S.FAILED, DIVIDED, "failover.division"),
    },
)  # fmt: skip
