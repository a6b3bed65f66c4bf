"""The state machine of a work: the order to create, suspend or remove one copy of a job in a member."""

from enum import StrEnum

from jobs.core.life.machine import Machine, Transition


class WorkState(StrEnum):
    PENDING = "Pending"
    SENDING = "Sending"
    APPLIED = "Applied"
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"
    WITHDRAWING = "Withdrawing"
    GONE = "Gone"
    KEPT = "Kept"
    """A failed copy that is kept in its member for inspection (``purgeMode: Never``)."""


class WorkEvent(StrEnum):
    PLACED = "Placed"
    BEGUN = "Begun"
    """Sending has begun, so the member may have a copy from now on."""
    SENT = "Sent"
    REFUSED = "Refused"
    DROPPED = "Dropped"
    """The work was never sent, and is no longer needed."""
    SUSPENSION_REQUESTED = "SuspensionRequested"
    SUSPENDED = "Suspended"
    NOTHING_TO_SUSPEND = "NothingToSuspend"
    """The member has no copy to suspend, or its kind has none that can stay suspended: any remaining objects are removed."""
    RESUMED_IN_MEMBER = "ResumedInMember"
    """A suspended copy was resumed by another client: it is suspended again."""
    WITHDRAWN = "Withdrawn"
    """The job needs no copy any more. A copy that was kept for inspection is removed as well."""
    SUPERSEDED = "Superseded"
    """Another attempt counts, or the job has ended. A copy that was kept for inspection stays."""
    RESTARTED = "Restarted"
    """The work is created for the attempt that takes the place of a former one, with a changed spec."""
    STRAY = "Stray"
    """The member reports a copy that should not exist: it is removed."""
    VANISHED = "Vanished"
    """The copy was deleted in its member by another client: the objects that belong to it are removed."""
    SUCCEEDED = "Succeeded"
    """The copy had succeeded before it was suspended: it is kept, so that its logs can be read."""
    KEPT = "Kept"
    """The copy has failed, and is kept for inspection."""
    REMOVED = "Removed"
    ADOPTED = "Adopted"
    """After restoring a backup: the work is created for a copy that is newer than the database."""
    LEFTOVER_FOUND = "LeftoverFound"
    """The member has a copy without a work: one is created to remove it."""
    JOB_FORGOTTEN = "JobForgotten"
    """The job's row no longer exists, so the copy is removed whatever the work was for."""


_S = WorkState
ACTIONABLE = frozenset({_S.PENDING, _S.SENDING, _S.SUSPENDING, _S.WITHDRAWING})
"""States in which something remains to be done in the member."""
_SENT = frozenset({_S.PENDING, _S.SENDING, _S.APPLIED})
_STANDING = frozenset({*_SENT, _S.SUSPENDING, _S.SUSPENDED})
"""States of a work that is neither over nor being removed."""


def _rule(target: WorkState, sources: frozenset[WorkState], *writers: str) -> Transition:
    return Transition(frozenset(state.value for state in sources), target.value, writers)


WORK = Machine(
    states=tuple(state.value for state in WorkState),
    terminal=frozenset(),
    transitions={
        WorkEvent.PLACED: _rule(_S.PENDING, frozenset(), "scheduling.decisions.apply"),
        WorkEvent.RESTARTED: _rule(_S.PENDING, frozenset(), "submission.changes.restarts"),
        WorkEvent.ADOPTED: _rule(_S.APPLIED, frozenset(), "failover.restored"),
        WorkEvent.LEFTOVER_FOUND: _rule(_S.WITHDRAWING, frozenset(), "follow.member_copies"),
        WorkEvent.BEGUN: _rule(_S.SENDING, frozenset({_S.PENDING}), "dispatch.dispatcher"),
        WorkEvent.SENT: _rule(_S.APPLIED, frozenset({_S.SENDING}), "dispatch.dispatcher"),
        WorkEvent.REFUSED: _rule(_S.WITHDRAWING, frozenset({_S.SENDING}), "dispatch.dispatcher"),
        WorkEvent.DROPPED: _rule(_S.GONE, frozenset({_S.PENDING}), "lifecycle.works", "failover.returns"),
        WorkEvent.SUSPENSION_REQUESTED: _rule(_S.SUSPENDING, _SENT, "lifecycle.works"),
        WorkEvent.SUSPENDED: _rule(_S.SUSPENDED, frozenset({_S.SUSPENDING}), "dispatch.dispatcher"),
        WorkEvent.NOTHING_TO_SUSPEND: _rule(_S.WITHDRAWING, frozenset({_S.SUSPENDING}), "dispatch.dispatcher"),
        WorkEvent.RESUMED_IN_MEMBER: _rule(_S.SUSPENDING, frozenset({_S.SUSPENDED}), "follow.status"),
        WorkEvent.WITHDRAWN: _rule(_S.WITHDRAWING, _STANDING | {_S.KEPT}, "lifecycle.works"),
        WorkEvent.SUPERSEDED: _rule(
            _S.WITHDRAWING, _STANDING, "lifecycle.works", "failover.restored", "scheduling.decisions.apply", "follow.status"
        ),
        # Also from Gone, which is not terminal: a paused worker may still create the copy, or the member may restore it.
        WorkEvent.STRAY: _rule(
            _S.WITHDRAWING, frozenset({_S.GONE, _S.APPLIED, _S.SENDING, _S.SUSPENDED}), "follow.member_copies"
        ),
        WorkEvent.VANISHED: _rule(_S.WITHDRAWING, frozenset({_S.APPLIED}), "follow.status", "failover.division"),
        WorkEvent.SUCCEEDED: _rule(
            _S.APPLIED, frozenset({_S.SUSPENDING, _S.SUSPENDED}), "failover.returns", "failover.division"
        ),
        WorkEvent.KEPT: _rule(_S.KEPT, frozenset({_S.APPLIED}), "failover.failover", "failover.division"),
        WorkEvent.REMOVED: _rule(_S.GONE, frozenset({_S.WITHDRAWING}), "dispatch.dispatcher"),
        WorkEvent.JOB_FORGOTTEN: _rule(_S.GONE, frozenset(_S) - {_S.GONE}, "dispatch.dispatcher"),
    },
)  # fmt: skip
