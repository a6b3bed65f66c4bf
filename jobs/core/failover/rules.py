"""When a job leaves its cluster: pure rules over times and policy, without knowing how a move is carried out.

Karmada's words (tolerationSeconds, purgeMode) with three differences: state outlives every move, a failed cluster stays
excluded for a growing time instead of while a task exists (no ping-pong), and attempts have a budget.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from jobs.core.failover.causes import Cause
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
    """Another attempt counts: a newer one that a restored database had forgotten, or an earlier one that had succeeded."""


BLAMED = frozenset({Outcome.FAILED, Outcome.REFUSED})
"""Outcomes of the job's own doing or the member's: those of class `APPLICATION`, unless a cause is known."""
NOT_THE_CLUSTERS = frozenset({Cause.CODE_ERROR, Cause.OUT_OF_MEMORY})
"""Causes that say nothing about the cluster where the attempt ran."""

_DAY = timedelta(days=1)
_MOST_DOUBLINGS = 8


@dataclass(frozen=True, slots=True)
class FailureClass:
    """Failures that count together: how many end the job, and how long their cluster is excluded."""

    name: str
    cool_off: timedelta | None
    """How long its cluster is excluded after the first; None: as long as the operator says."""
    free: int = 0
    """So many on one cluster exclude it not yet."""
    budgets: int = 1
    """How many times the attempts a job may have."""
    window: timedelta | None = None
    """Only those count that are no older than this before the latest; None: all."""


APPLICATION = FailureClass("failed", None)
"""The job itself failed, or a member refused it."""
REMOVED = FailureClass("lost its copy to a deletion in its cluster", timedelta(seconds=30), free=1, window=_DAY)
INFRASTRUCTURE = FailureClass("lost its cluster", timedelta(minutes=1), free=1, budgets=4, window=_DAY)
NODES = FailureClass("lost its nodes", timedelta(minutes=1), free=1, budgets=4, window=_DAY)
EVICTED = FailureClass("was evicted in its cluster", timedelta(minutes=1), free=1, budgets=4, window=_DAY)
CODE_ERROR = FailureClass("failed by an error of its own program", None)
OUT_OF_MEMORY = FailureClass("ran out of memory", None)
_CLASS_OF: Mapping[str, FailureClass] = {
    **dict.fromkeys(BLAMED, APPLICATION),
    Outcome.VANISHED: REMOVED,
    Outcome.LOST: INFRASTRUCTURE,
}
_CLASS_OF_CAUSE: Mapping[str, FailureClass] = {
    Cause.CODE_ERROR: CODE_ERROR,
    Cause.OUT_OF_MEMORY: OUT_OF_MEMORY,
    Cause.INFRASTRUCTURE: NODES,
    Cause.EVICTED: EVICTED,
}
_BUDGET_OF: Mapping[Cause, tuple[FailureClass, ...]] = {
    Cause.CODE_ERROR: (CODE_ERROR,),
    Cause.OUT_OF_MEMORY: (OUT_OF_MEMORY,),
    Cause.INFRASTRUCTURE: (INFRASTRUCTURE, NODES),
    Cause.EVICTED: (EVICTED,),
    Cause.REMOVED: (REMOVED,),
    Cause.REFUSED: (APPLICATION,),
    Cause.UNKNOWN: (APPLICATION,),
}
_ENDING = (CODE_ERROR, OUT_OF_MEMORY, APPLICATION, REMOVED, EVICTED, NODES, INFRASTRUCTURE)
"""In the order in which they are named when several are spent."""


@dataclass(frozen=True, slots=True)
class Past:
    """An ended attempt."""

    cluster: str
    outcome: str
    ended_at: datetime
    cause: str = ""
    """Of class `Cause`, where the attempt failed and that is known."""


def excluded_until(past: Sequence[Past], cool_off: timedelta) -> dict[str, datetime]:
    """Until when each cluster is excluded for a job with this history: for ``cool_off`` after its own first failure there."""
    failures: dict[tuple[str, FailureClass], list[datetime]] = {}
    for attempt in past:
        if kind := _class_of(attempt):
            failures.setdefault((attempt.cluster, kind), []).append(attempt.ended_at)
    until: dict[str, datetime] = {}
    for (cluster, kind), ends in failures.items():
        doublings = len(_counted_failures(ends, kind)) - kind.free - 1
        if doublings >= 0:
            end = max(ends) + (kind.cool_off or cool_off) * 2 ** min(doublings, _MOST_DOUBLINGS)
            until[cluster] = max(end, until.get(cluster, end))
    return until


def budget_spent(past: Sequence[Past], max_attempts: int, budgets: Mapping[Cause, int] | None = None) -> str:
    """What a job with this history did too often to be tried again, as a verb with a count; empty: it may be tried.

    ``budgets`` go before ``max_attempts`` for their causes. Failures of the job itself, of whatever cause, end it after
    ``max_attempts`` together, so that causes that take turns do not go on for ever.
    """
    limits = {kind: max_attempts * kind.budgets for kind in _ENDING}
    limits |= {kind: limit for cause, limit in (budgets or {}).items() for kind in _BUDGET_OF[cause]}
    for kind in _ENDING:
        count = len(_counted_failures([attempt.ended_at for attempt in past if _class_of(attempt) is kind], kind))
        if count and count >= limits[kind]:
            return f"{kind.name} {count} times" + (" within a day" if kind.window else "")
    count = sum(_class_of(attempt) in (APPLICATION, CODE_ERROR, OUT_OF_MEMORY) for attempt in past)
    most = max(max_attempts, limits[CODE_ERROR], limits[OUT_OF_MEMORY], limits[APPLICATION])
    return f"failed {count} times" if count >= most else ""


def _class_of(attempt: Past) -> FailureClass | None:
    of_outcome = _CLASS_OF.get(attempt.outcome)
    return _CLASS_OF_CAUSE.get(attempt.cause, of_outcome) if of_outcome is APPLICATION else of_outcome


def _counted_failures(ends: Sequence[datetime], kind: FailureClass) -> list[datetime]:
    return [end for end in ends if kind.window is None or max(ends) - end <= kind.window]


def leaves_cluster_at(taints: Sequence[Taint], tolerations: Sequence[Toleration], default_s: float) -> datetime | None:
    """When a job must leave a cluster with these taints; None: it may stay.

    A taint without a matching toleration is tolerated for ``default_s``, as Kubernetes does for unreachable nodes.
    """
    due = [tolerated_for(taint, tolerations, default_s) for taint in taints if taint.effect == "NoExecute"]
    times = [at for at in due if at is not None]
    return min(times) if times else None
