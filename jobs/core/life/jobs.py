"""The life of a job. A job that is divided has events of its own: its state follows from its shares."""

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
    """The member has the copy; not all of its pods run."""
    RUNS = "Runs"
    FAILED_IN_MEMBER = "FailedInMember"
    """Its copy has failed, and the policy's toleration runs."""
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    GAVE_UP = "GaveUp"
    """It left its cluster once more than its budget allows."""
    LEFT = "Left"
    REQUEUED = "Requeued"
    """It left, and its policy starts jobs through a queue only."""
    RETURNED_RUNNING = "ReturnedRunning"
    """The copy it had left behind runs on, or has succeeded."""
    RETURNED = "Returned"
    """As RETURNED_RUNNING, of an attempt that had not started."""
    ADOPTED = "Adopted"
    """A copy newer than a restored database is its current attempt now."""
    EVICTED = "Evicted"
    MADE_ROOM = "MadeRoom"
    SUSPENDED = "Suspended"
    RESUMED = "Resumed"
    SHARE_LEFT = "ShareLeft"
    SHARES_PLACED = "SharesPlaced"
    SHARES_SENT = "SharesSent"
    SHARES_RUN = "SharesRun"
    SHARE_FAILED_IN_MEMBER = "ShareFailedInMember"
    SHARES_SUCCEEDED = "SharesSucceeded"
    SHARE_FAILED = "ShareFailed"


_S = JobState
WAITING = frozenset({_S.QUEUED, _S.MOVING})
"""States the scheduler looks at."""
ON_MEMBER = frozenset({_S.PLACED, _S.DISPATCHED, _S.RUNNING, _S.BACKOFF})
"""States with a current attempt that counts; in Backoff its copy has failed and the toleration runs."""
FINISHED = frozenset({_S.SUCCEEDED, _S.FAILED})
LIVE = frozenset(_S) - FINISHED
DIVIDED = ON_MEMBER | {_S.MOVING}
"""States of a job that is divided while its shares are followed: in Moving some of them are missing."""
_LEFT_BEHIND = frozenset({*WAITING, _S.SUSPENDED, _S.RECLAIMING})
"""States of a job whose latest attempt is closed, while its copy may still be there."""


def _rule(target: JobState, sources: frozenset[JobState], *writers: str) -> Transition:
    return Transition(frozenset(state.value for state in sources), target.value, writers)


JOB = Machine(
    states=tuple(state.value for state in JobState),
    terminal=frozenset(state.value for state in FINISHED),
    transitions={
        JobEvent.SUBMITTED: _rule(_S.QUEUED, frozenset(), "submission.submit"),
        JobEvent.SUBMITTED_SUSPENDED: _rule(_S.SUSPENDED, frozenset(), "submission.submit"),
        JobEvent.PLACED: _rule(_S.PLACED, WAITING, "scheduling.apply"),
        JobEvent.SENT: _rule(_S.DISPATCHED, frozenset({_S.PLACED, _S.DISPATCHED}), "dispatch.dispatcher", "follow.status"),
        JobEvent.RUNS: _rule(_S.RUNNING, ON_MEMBER, "follow.status"),
        JobEvent.FAILED_IN_MEMBER: _rule(_S.BACKOFF, ON_MEMBER, "follow.status"),
        # Whatever it was left for: work that is done is not done again. From Placed too, by an attempt before.
        JobEvent.SUCCEEDED: _rule(_S.SUCCEEDED, LIVE, "follow.status"),
        JobEvent.FAILED: _rule(_S.FAILED, ON_MEMBER, "follow.status"),
        JobEvent.LEFT: _rule(_S.MOVING, ON_MEMBER, "failover.failover"),
        JobEvent.REQUEUED: _rule(_S.QUEUED, frozenset({_S.MOVING}), "failover.failover"),
        JobEvent.GAVE_UP: _rule(_S.FAILED, DIVIDED, "failover.failover"),
        JobEvent.RETURNED_RUNNING: _rule(_S.RUNNING, _LEFT_BEHIND, "failover.returns"),
        JobEvent.RETURNED: _rule(_S.DISPATCHED, _LEFT_BEHIND, "failover.returns"),
        JobEvent.ADOPTED: _rule(
            _S.DISPATCHED, ON_MEMBER | WAITING | {_S.RECLAIMING}, "failover.restored"
        ),
        # Once more when a plan evicts it for a second preemptor as well.
        JobEvent.EVICTED: _rule(_S.RECLAIMING, ON_MEMBER | WAITING | {_S.RECLAIMING}, "scheduling.preemption"),
        JobEvent.MADE_ROOM: _rule(_S.QUEUED, frozenset({_S.RECLAIMING}), "scheduling.preemption"),
        JobEvent.SUSPENDED: _rule(_S.SUSPENDED, LIVE - {_S.SUSPENDED}, "submission.actions"),
        JobEvent.RESUMED: _rule(_S.QUEUED, frozenset({_S.SUSPENDED}), "submission.actions"),
        JobEvent.SHARE_LEFT: _rule(_S.MOVING, DIVIDED, "failover.division"),
        JobEvent.SHARES_PLACED: _rule(_S.PLACED, DIVIDED, "failover.shares"),
        JobEvent.SHARES_SENT: _rule(_S.DISPATCHED, DIVIDED, "failover.shares"),
        JobEvent.SHARES_RUN: _rule(_S.RUNNING, DIVIDED, "failover.shares"),
        JobEvent.SHARE_FAILED_IN_MEMBER: _rule(_S.BACKOFF, DIVIDED, "failover.shares"),
        JobEvent.SHARES_SUCCEEDED: _rule(_S.SUCCEEDED, LIVE, "failover.shares"),
        JobEvent.SHARE_FAILED: _rule(_S.FAILED, DIVIDED, "failover.division"),
    },
)  # fmt: skip
