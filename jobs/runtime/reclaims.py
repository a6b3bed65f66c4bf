"""What became of the pods whose node was taken back, node by node: made of the notices that they were given. Pure.

What a pod lost is counted from its job's last save that the fleet knows of, or from when its attempt began to run: a checkpoint
of which nothing was reported makes it less.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Outcome(StrEnum):
    SAVED = "Saved"
    """It reported its checkpoint, or heard its notice and left before its deadline."""
    LOST = "Lost"
    """It left without any of that."""
    LEAVING = "Leaving"
    """It has not left yet."""


@dataclass(frozen=True, slots=True)
class NoticeOfPod:
    """A notice as it is stored, with what its pod had."""

    job: int
    attempt: int
    pod: str
    node: str
    cause: str
    at: datetime
    deadline: datetime
    heard_at: datetime | None
    left_at: datetime | None
    saved_step: int | None
    gpus: int
    began: datetime | None
    """When its attempt began to run; None: it had not."""

    def outcome(self, now: datetime) -> Outcome:
        if self.saved_step is not None:
            return Outcome.SAVED
        if self.left_at is None and now < self.deadline:
            return Outcome.LEAVING
        heard = self.heard_at is not None and self.left_at is not None and self.left_at <= self.deadline
        return Outcome.SAVED if heard else Outcome.LOST

    @property
    def ended(self) -> datetime:
        return self.left_at or self.deadline


@dataclass(frozen=True, slots=True)
class PodOfReclaim:
    notice: NoticeOfPod
    outcome: Outcome
    lost_gpu_s: float


@dataclass(slots=True)
class Reclaim:
    """A node that was taken back once."""

    node: str
    cause: str
    at: datetime
    deadline: datetime
    pods: list[PodOfReclaim] = field(default_factory=list)

    def count(self, outcome: Outcome) -> int:
        return sum(pod.outcome is outcome for pod in self.pods)

    @property
    def lost_gpu_minutes(self) -> float:
        return sum(pod.lost_gpu_s for pod in self.pods) / 60


def of_notices(notices: Iterable[NoticeOfPod], now: datetime) -> list[Reclaim]:
    """The reclaims, the latest first. Notices of a node are of one reclaim until the first of their deadlines is over."""
    rows = sorted(notices, key=lambda row: (row.at, row.pod))
    saves = defaultdict[tuple[int, int], list[NoticeOfPod]](list)
    for row in rows:
        if row.outcome(now) is Outcome.SAVED:
            saves[row.job, row.attempt].append(row)
    latest = dict[str, Reclaim]()
    reclaims: list[Reclaim] = []
    for row in rows:
        reclaim = latest.get(row.node)
        if reclaim is None or row.at > reclaim.deadline:
            reclaim = latest[row.node] = Reclaim(row.node, row.cause, row.at, row.deadline)
            reclaims.append(reclaim)
        outcome = row.outcome(now)
        lost = _lost_s(row, saves[row.job, row.attempt]) if outcome is Outcome.LOST else 0.0
        reclaim.pods.append(PodOfReclaim(row, outcome, lost * row.gpus))
    return reclaims[::-1]


def _lost_s(row: NoticeOfPod, saves: Iterable[NoticeOfPod]) -> float:
    """``saves``: pods of its attempt that saved. What one saves in answer to the same notice is the work of all of them."""
    moments = [save.ended for save in saves if save.ended <= row.ended or save.at == row.at]
    since = max([*moments, *([row.began] if row.began else [])], default=None)
    return max((row.ended - since).total_seconds(), 0.0) if since is not None else 0.0
