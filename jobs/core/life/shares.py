"""The state machine of a share: the part of a divided job that one cluster runs. A share is an attempt with its own work."""

from enum import StrEnum

from jobs.core.life.machine import Machine, Transition


class ShareState(StrEnum):
    PLACED = "Placed"
    DISPATCHED = "Dispatched"
    RUNNING = "Running"
    BACKOFF = "Backoff"
    """Its copy has failed. The share moves once the policy's toleration is over."""
    SUCCEEDED = "Succeeded"
    LOST = "Lost"
    """It has left its cluster. Its completions are kept."""


class ShareEvent(StrEnum):
    PLACED = "Placed"
    SENT = "Sent"
    """The member has the copy, but not all pods run yet."""
    RUNS = "Runs"
    FAILED_IN_MEMBER = "FailedInMember"
    SUCCEEDED = "Succeeded"
    LEFT = "Left"
    """Only this share leaves its cluster; the other shares stay."""
    STOPPED = "Stopped"
    """The whole job was stopped, and waits to be placed again."""
    REGAINED = "Regained"
    """Its copy still runs or has succeeded, and no replacement is placed yet."""


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
        # A lost share that has succeeded is regained first, unless its replicas have been placed elsewhere.
        ShareEvent.SUCCEEDED: _rule(_S.SUCCEEDED, SHARE_LIVE, "failover.division"),
        ShareEvent.LEFT: _rule(_S.LOST, SHARE_LIVE, "failover.division"),
        ShareEvent.STOPPED: _rule(_S.LOST, SHARE_LIVE, "failover.shares"),
        ShareEvent.REGAINED: _rule(_S.DISPATCHED, frozenset({_S.LOST}), "failover.division"),
    },
)  # fmt: skip
