"""Taints of clusters and tolerations of policies, with Kubernetes' meaning."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    effect: str
    """NoSchedule, PreferNoSchedule or NoExecute."""
    value: str = ""
    added_at: datetime = datetime.min.replace(tzinfo=UTC)

    def __str__(self) -> str:
        return f"{self.key}{'=' + self.value if self.value else ''}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Toleration:
    key: str = ""
    """Empty with operator Exists: every key."""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    """Empty: every effect."""
    seconds: float | None = None
    """NoExecute only: for how long; None: for ever."""

    def matches(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return bool(self.key) and self.value == taint.value


def untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The first taint that keeps a new job off the cluster."""
    for taint in taints:
        if taint.effect != "PreferNoSchedule" and not any(t.matches(taint) for t in tolerations):
            return taint
    return None


def tolerated_for(taint: Taint, tolerations: Sequence[Toleration], default_s: float) -> datetime | None:
    """Until when a NoExecute taint is tolerated; None: for ever. The shortest matching toleration counts."""
    matching = [t for t in tolerations if t.matches(taint)]
    if not matching:
        return taint.added_at + timedelta(seconds=default_s)
    limits = [t.seconds for t in matching if t.seconds is not None]
    return taint.added_at + timedelta(seconds=min(limits)) if limits else None
