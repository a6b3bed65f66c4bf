"""When a job leaves its cluster: pure rules over times and policy, without knowing how a move is carried out.

Karmada's words (tolerationSeconds, purgeMode) with three differences: state outlives every move, a failed cluster stays
excluded for a growing time instead of while a task exists (no ping-pong), and attempts have a budget.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from jobs.core.taints import Taint, Toleration, tolerated_for


class PurgeMode(StrEnum):
    DIRECTLY = "Directly"
    """Remove the old copy first, then place."""
    GRACEFULLY = "Gracefully"
    """Remove the old copy once a replacement has its place."""
    NEVER = "Never"
    """Leave the failed copy where it is, for a person to look at."""


class Outcome(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    REFUSED = "Refused"
    LOST = "Lost"
    VANISHED = "Vanished"
    SUSPENDED = "Suspended"
    DELETED = "Deleted"
    RECLAIMED = "Reclaimed"
    SUPERSEDED = "Superseded"
    """A newer attempt is in a member, which a restored database had forgotten."""


BLAMED = frozenset({Outcome.FAILED, Outcome.REFUSED})
"""Outcomes of the job's own doing or the member's: those of class `APPLICATION`."""

COOL_OFF = timedelta(minutes=5)
"""How long a cluster is excluded for a job after its first failure there; doubled by each further one."""
_DAY = timedelta(days=1)
_MOST_DOUBLINGS = 8


@dataclass(frozen=True, slots=True)
class FailureClass:
    """Outcomes that count together: how many end the job, and how long their cluster is excluded."""

    name: str
    cool_off: timedelta
    free: int = 0
    """So many on one cluster exclude it not yet."""
    budgets: int = 1
    """How many times the attempts a job may have."""
    window: timedelta | None = None
    """Only those count that are no older than this before the latest; None: all."""


APPLICATION = FailureClass("failed", COOL_OFF)
"""The job itself failed, or a member refused it."""
REMOVED = FailureClass("lost its copy to somebody else's deletion", timedelta(seconds=30), free=1, window=_DAY)
INFRASTRUCTURE = FailureClass("lost its cluster", timedelta(minutes=1), free=1, budgets=4, window=_DAY)
_CLASS_OF: Mapping[str, FailureClass] = {
    **dict.fromkeys(BLAMED, APPLICATION),
    Outcome.VANISHED: REMOVED,
    Outcome.LOST: INFRASTRUCTURE,
}


@dataclass(frozen=True, slots=True)
class Past:
    """An ended attempt."""

    cluster: str
    outcome: str
    ended_at: datetime


def excluded_until(past: Sequence[Past]) -> dict[str, datetime]:
    """Until when each cluster is out of the question for a job with this history."""
    failures: dict[tuple[str, FailureClass], list[datetime]] = {}
    for attempt in past:
        if kind := _class_of(attempt):
            failures.setdefault((attempt.cluster, kind), []).append(attempt.ended_at)
    until: dict[str, datetime] = {}
    for (cluster, kind), ends in failures.items():
        doublings = len(_counting(ends, kind)) - kind.free - 1
        if doublings >= 0:
            end = max(ends) + kind.cool_off * 2 ** min(doublings, _MOST_DOUBLINGS)
            until[cluster] = max(end, until.get(cluster, end))
    return until


def budget_spent(past: Sequence[Past], max_attempts: int) -> str:
    """What a job with this history did too often to be tried again, as a verb with a count; empty: it may be tried."""
    for kind in (APPLICATION, REMOVED, INFRASTRUCTURE):
        count = len(_counting([attempt.ended_at for attempt in past if _class_of(attempt) is kind], kind))
        if count >= max_attempts * kind.budgets:
            return f"{kind.name} {count} times" + (" within a day" if kind.window else "")
    return ""


def _class_of(attempt: Past) -> FailureClass | None:
    return _CLASS_OF.get(attempt.outcome)


def _counting(ends: Sequence[datetime], kind: FailureClass) -> list[datetime]:
    return [end for end in ends if kind.window is None or max(ends) - end <= kind.window]


def leaves_cluster_at(taints: Sequence[Taint], tolerations: Sequence[Toleration], default_s: float) -> datetime | None:
    """When a job must leave a cluster with these taints; None: it may stay.

    A taint without a matching toleration is tolerated for ``default_s``, as Kubernetes does for unreachable nodes.
    """
    due = [tolerated_for(taint, tolerations, default_s) for taint in taints if taint.effect == "NoExecute"]
    times = [at for at in due if at is not None]
    return min(times) if times else None
