"""When a job leaves its cluster: pure rules over times and policy, without knowing how a move is carried out.

Karmada's words (tolerationSeconds, purgeMode) with three differences: state outlives every move, a failed cluster stays
excluded for a growing time instead of while a task exists (no ping-pong), and attempts have a budget.
"""

from collections.abc import Sequence
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


BLAMED = frozenset({Outcome.FAILED, Outcome.REFUSED})
"""Outcomes that count against the cluster and against the budget of attempts."""

COOL_OFF = timedelta(minutes=5)
"""How long a cluster is excluded for a job after its first failure there; doubled by each further one."""


@dataclass(frozen=True, slots=True)
class Past:
    """An ended attempt."""

    cluster: str
    outcome: str
    ended_at: datetime


def excluded_until(past: Sequence[Past]) -> dict[str, datetime]:
    """Until when each cluster is out of the question for a job with this history."""
    failures: dict[str, list[datetime]] = {}
    for attempt in past:
        if attempt.outcome in BLAMED:
            failures.setdefault(attempt.cluster, []).append(attempt.ended_at)
    return {cluster: max(ends) + COOL_OFF * 2 ** (len(ends) - 1) for cluster, ends in failures.items()}


def blamed(past: Sequence[Past]) -> int:
    """How much of the budget of attempts is spent."""
    return sum(attempt.outcome in BLAMED for attempt in past)


def leaves_cluster_at(taints: Sequence[Taint], tolerations: Sequence[Toleration], default_s: float) -> datetime | None:
    """When a job must leave a cluster with these taints; None: it may stay.

    A taint without a matching toleration is tolerated for ``default_s``, as Kubernetes does for unreachable nodes.
    """
    due = [tolerated_for(taint, tolerations, default_s) for taint in taints if taint.effect == "NoExecute"]
    times = [at for at in due if at is not None]
    return min(times) if times else None
