"""The life of a work: a copy of a job that is to be, is, or was in a member."""

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
    """A failed copy left in its member for a person to look at (``purgeMode: Never``)."""


class WorkEvent(StrEnum):
    PLACED = "Placed"
    BEGUN = "Begun"
    """Its sending has begun: the member may have a copy from now on."""
    SENT = "Sent"
    REFUSED = "Refused"
    DROPPED = "Dropped"
    """It was never sent, and is not wanted any more."""
    SUSPENSION_REQUESTED = "SuspensionRequested"
    SUSPENDED = "Suspended"
    NOTHING_TO_SUSPEND = "NothingToSuspend"
    """The member has no copy of it, or cannot suspend one: what may be left of it is removed."""
    RESUMED_IN_MEMBER = "ResumedInMember"
    """A suspended copy runs: it is suspended again."""
    WITHDRAWN = "Withdrawn"
    """Its job wants no copy any more, not even one that was left for a person to look at."""
    SUPERSEDED = "Superseded"
    """Another attempt counts, or the job has ended: copies left for a person to look at stay."""
    STRAY = "Stray"
    """The member shows a copy that should not be there."""
    VANISHED = "Vanished"
    """The copy was deleted in its member by another client: what belongs to it is removed."""
    SUCCEEDED = "Succeeded"
    """The copy had succeeded before it was suspended: it stays, so that its logs can be read."""
    KEPT = "Kept"
    """It has failed, and is left for a person to look at."""
    REMOVED = "Removed"
    ADOPTED = "Adopted"
    LEFTOVER_FOUND = "LeftoverFound"
    """The member has a copy that no work stands for: one is made to remove it."""
    JOB_FORGOTTEN = "JobForgotten"
    """Its job's row is gone: whatever was to be done, the copy is removed."""


_S = WorkState
ACTIONABLE = frozenset({_S.PENDING, _S.SENDING, _S.SUSPENDING, _S.WITHDRAWING})
"""States in which something is to be done in the member."""
_SENT = frozenset({_S.PENDING, _S.SENDING, _S.APPLIED})
_STANDING = frozenset({*_SENT, _S.SUSPENDING, _S.SUSPENDED})
"""States of a work that is neither over nor being removed."""


def _rule(target: WorkState, sources: frozenset[WorkState], *writers: str) -> Transition:
    return Transition(frozenset(state.value for state in sources), target.value, writers)


WORK = Machine(
    states=tuple(state.value for state in WorkState),
    terminal=frozenset(),
    transitions={
        WorkEvent.PLACED: _rule(_S.PENDING, frozenset(), "scheduling.apply"),
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
            _S.WITHDRAWING, _STANDING, "lifecycle.works", "failover.restored", "scheduling.apply", "follow.status"
        ),
        # A work that is gone is no end: a paused worker may make its copy after that, or the member restore it.
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
