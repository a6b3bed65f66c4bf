"""Rules for when a job leaves its cluster, where it may not return to, and when its attempts are used up. No I/O.

The fields are Karmada's (tolerationSeconds, purgeMode), with three differences: the history of attempts is kept across moves; a
cluster on which the job failed stays excluded for a time that doubles with each failure, so that jobs do not bounce between two
clusters; and the number of attempts is limited.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from jobs.core.failover.causes import Cause
from jobs.core.taints import Taint, Toleration, tolerated_for


class PurgeMode(StrEnum):
    DIRECTLY = "Directly"
    """The old copy is removed without waiting for a replacement."""
    GRACEFULLY = "Gracefully"
    """The old copy is removed once the replacement is placed."""
    NEVER = "Never"
    """The failed copy is kept, so that a user can inspect it."""


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
    TIMED_OUT = "TimedOut"
    """It ran longer than its queue allows, or its job's deadline came."""
    DRAINED = "Drained"
    """A person drained its cluster, or a node under it: no failure of the job or of the cluster."""
    SUPERSEDED = "Superseded"
    """Another attempt counts: a newer one that a restored database did not know, an earlier one that had succeeded, or the one
    that was started at the same place with a changed spec."""


BLAMED = frozenset({Outcome.FAILED, Outcome.REFUSED})
"""Outcomes caused by the job or refused by the member. Without a known cause they are of class `APPLICATION`."""
NOT_THE_CLUSTERS = frozenset({Cause.CODE_ERROR, Cause.DATA_ERROR, Cause.OUT_OF_MEMORY})
"""Causes that do not indicate a problem of the cluster."""

_DAY = timedelta(days=1)
_MAX_DOUBLINGS = 8


@dataclass(frozen=True, slots=True)
class FailureClass:
    """Failures that are counted together: how many of them end the job, and how long they exclude their cluster."""

    name: str
    cool_off: timedelta | None
    """How long the first failure excludes its cluster. None: the time that the operator has configured."""
    free: int = 0
    """How many failures on one cluster do not exclude it yet."""
    budgets: int = 1
    """The limit, as a multiple of the job's maximum number of attempts."""
    window: timedelta | None = None
    """Only failures within this time before the latest one count. None: all failures count."""


APPLICATION = FailureClass("failed", None)
"""The job itself failed, or a member refused it."""
REMOVED = FailureClass("lost its copy to a deletion in its cluster", timedelta(seconds=30), free=1, window=_DAY)
INFRASTRUCTURE = FailureClass("lost its cluster", timedelta(minutes=1), free=1, budgets=4, window=_DAY)
NODES = FailureClass("lost its nodes", timedelta(minutes=1), free=1, budgets=4, window=_DAY)
ONE_NODE = FailureClass("lost a node", timedelta(minutes=1), free=3, window=timedelta(hours=1))
"""Instead of `NODES` for the cluster: the node is excluded, and the cluster only if it loses one after the other.

A loss of several at once is one of these too.
"""
EVICTED = FailureClass("was evicted in its cluster", timedelta(minutes=1), free=1, budgets=4, window=_DAY)
CODE_ERROR = FailureClass("failed by an error of its own program", None)
DATA_ERROR = FailureClass("could not read its data", None)
OUT_OF_MEMORY = FailureClass("ran out of memory", None)
_CLASS_OF: Mapping[str, FailureClass] = {
    **dict.fromkeys(BLAMED, APPLICATION),
    Outcome.VANISHED: REMOVED,
    Outcome.LOST: INFRASTRUCTURE,
}
_CLASS_OF_CAUSE: Mapping[str, FailureClass] = {
    Cause.CODE_ERROR: CODE_ERROR,
    Cause.DATA_ERROR: DATA_ERROR,
    Cause.OUT_OF_MEMORY: OUT_OF_MEMORY,
    Cause.INFRASTRUCTURE: NODES,
    Cause.EVICTED: EVICTED,
}
_BUDGET_OF: Mapping[Cause, tuple[FailureClass, ...]] = {
    Cause.CODE_ERROR: (CODE_ERROR,),
    Cause.DATA_ERROR: (DATA_ERROR,),
    Cause.OUT_OF_MEMORY: (OUT_OF_MEMORY,),
    Cause.INFRASTRUCTURE: (INFRASTRUCTURE, NODES),
    Cause.EVICTED: (EVICTED,),
    Cause.REMOVED: (REMOVED,),
    Cause.REFUSED: (APPLICATION,),
    Cause.UNKNOWN: (APPLICATION,),
}
_ENDING = (CODE_ERROR, DATA_ERROR, OUT_OF_MEMORY, APPLICATION, REMOVED, EVICTED, NODES, INFRASTRUCTURE)
"""If several budgets are spent, the message names the first of them in this order."""


@dataclass(frozen=True, slots=True)
class Past:
    """An ended attempt."""

    cluster: str
    outcome: str
    ended_at: datetime
    cause: str = ""
    """A value of `Cause`, if the attempt failed and the cause is known."""
    is_not_the_clusters: bool = False
    """Whether its cluster is not to blame: the program's own exception ended it, or a node that is excluded by itself."""
    left_lost_nodes: int = 0
    """How many nodes were lost under pods that ran."""


def excluded_until(
    past: Sequence[Past], cool_off: timedelta, of_causes: Mapping[Cause, int] | None = None
) -> dict[str, datetime]:
    """Until when each cluster is excluded for a job with this history.

    ``cool_off`` applies after the first failure of the job itself on a cluster, and doubles with each further one.
    ``of_causes`` are seconds that replace it, and that of other classes, for single causes; 0 excludes no cluster. An exception
    of the program excludes none: to try it elsewhere would only move the error around the fleet. Nor does a faulty node, which
    is excluded instead, nor a lost one, unless others follow within the hour.
    """
    stated = {kind: timedelta(seconds=s) for cause, s in (of_causes or {}).items() for kind in _BUDGET_OF[cause]}
    if NODES in stated:
        stated[ONE_NODE] = stated[NODES]
    failures: dict[tuple[str, FailureClass], list[datetime]] = {}
    for attempt in past:
        if not attempt.is_not_the_clusters and (kind := _class_of(attempt)):
            if kind is NODES and attempt.left_lost_nodes:
                failures.setdefault((attempt.cluster, ONE_NODE), []).append(attempt.ended_at)
            if kind is not NODES or attempt.left_lost_nodes != 1:
                failures.setdefault((attempt.cluster, kind), []).append(attempt.ended_at)
    until: dict[str, datetime] = {}
    for (cluster, kind), ends in failures.items():
        doublings = len(_counted_failures(ends, kind)) - kind.free - 1
        base = stated.get(kind, kind.cool_off or cool_off)
        if doublings >= 0 and base:
            end = max(ends) + base * 2 ** min(doublings, _MAX_DOUBLINGS)
            until[cluster] = max(end, until.get(cluster, end))
    return until


def budget_spent(past: Sequence[Past], max_attempts: int, budgets: Mapping[Cause, int] | None = None) -> str:
    """Why a job with this history is not tried again, for example "failed 3 times". Empty if it may be tried again.

    ``budgets`` replace ``max_attempts`` for single causes. Lost nodes that were left in time count only against a budget of
    their own: nodes that come and go end no job, and the cool-off, which doubles, limits how often it moves. In addition, all
    failures of the job itself together are limited, so that alternating causes cannot restart the job without end.
    """
    if Cause.INFRASTRUCTURE not in (budgets or {}):
        past = [attempt for attempt in past if not (_class_of(attempt) is NODES and attempt.left_lost_nodes)]
    limits = {kind: max_attempts * kind.budgets for kind in _ENDING}
    limits |= {kind: limit for cause, limit in (budgets or {}).items() for kind in _BUDGET_OF[cause]}
    for kind in _ENDING:
        count = len(_counted_failures([attempt.ended_at for attempt in past if _class_of(attempt) is kind], kind))
        if count and count >= limits[kind]:
            return f"{kind.name} {count} times" + (" within a day" if kind.window else "")
    count = sum(_class_of(attempt) in (APPLICATION, CODE_ERROR, DATA_ERROR, OUT_OF_MEMORY) for attempt in past)
    most = max(max_attempts, limits[CODE_ERROR], limits[DATA_ERROR], limits[OUT_OF_MEMORY], limits[APPLICATION])
    return f"failed {count} times" if count >= most else ""


def _class_of(attempt: Past) -> FailureClass | None:
    of_outcome = _CLASS_OF.get(attempt.outcome)
    return _CLASS_OF_CAUSE.get(attempt.cause, of_outcome) if of_outcome is APPLICATION else of_outcome


def _counted_failures(ends: Sequence[datetime], kind: FailureClass) -> list[datetime]:
    return [end for end in ends if kind.window is None or max(ends) - end <= kind.window]


def leaves_cluster_at(taints: Sequence[Taint], tolerations: Sequence[Toleration], default_s: float) -> datetime | None:
    """When a job must leave a cluster with these taints. None: it may stay.

    A taint without a matching toleration is tolerated for ``default_s``, as Kubernetes tolerates unreachable nodes.
    """
    due = [tolerated_for(taint, tolerations, default_s) for taint in taints if taint.effect == "NoExecute"]
    times = [at for at in due if at is not None]
    return min(times) if times else None
