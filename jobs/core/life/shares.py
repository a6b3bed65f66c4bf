"""The life of a share of a divided job: what one cluster has of it. A share is an attempt; its copy is a work of its own."""

from enum import StrEnum

from jobs.core.life.machine import Machine, Transition


class ShareState(StrEnum):
    PLACED = "Placed"
    DISPATCHED = "Dispatched"
    RUNNING = "Running"
    BACKOFF = "Backoff"
    """Its copy has failed, and the policy's toleration runs."""
    SUCCEEDED = "Succeeded"
    LOST = "Lost"
    """It has left its cluster; what it had done is not done again."""


class ShareEvent(StrEnum):
    PLACED = "Placed"
    SENT = "Sent"
    """The member has the copy; not all of its pods run."""
    RUNS = "Runs"
    FAILED_IN_MEMBER = "FailedInMember"
    SUCCEEDED = "Succeeded"
    LEFT = "Left"
    """It leaves its cluster alone, and the other shares stay."""
    STOPPED = "Stopped"
    """Its job was stopped whole, and waits to be placed again."""
    REGAINED = "Regained"
    """Its copy runs on or has succeeded, and nothing has replaced it yet."""


_S = ShareState
SHARE_LIVE = frozenset({_S.PLACED, _S.DISPATCHED, _S.RUNNING, _S.BACKOFF})


def _rule(target: ShareState, sources: frozenset[ShareState], *writers: str) -> Transition:
    return Transition(frozenset(state.value for state in sources), target.value, writers)


SHARE = Machine(
    states=tuple(state.value for state in ShareState),
    terminal=frozenset({_S.SUCCEEDED.value}),
    transitions={
        ShareEvent.PLACED: _rule(_S.PLACED, frozenset(), "failover.shares"),
        ShareEvent.SENT: _rule(_S.DISPATCHED, frozenset({_S.PLACED}), "failover.division", "follow.division_status"),
        ShareEvent.RUNS: _rule(_S.RUNNING, SHARE_LIVE, "follow.division_status"),
        ShareEvent.FAILED_IN_MEMBER: _rule(_S.BACKOFF, SHARE_LIVE, "follow.division_status"),
        # Whatever it was left or stopped for, unless other shares have taken over what it had.
        ShareEvent.SUCCEEDED: _rule(_S.SUCCEEDED, SHARE_LIVE, "failover.division"),
        ShareEvent.LEFT: _rule(_S.LOST, SHARE_LIVE, "failover.division"),
        ShareEvent.STOPPED: _rule(_S.LOST, SHARE_LIVE, "failover.shares"),
        ShareEvent.REGAINED: _rule(_S.DISPATCHED, frozenset({_S.LOST}), "failover.division"),
    },
)  # fmt: skip
