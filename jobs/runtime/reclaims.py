"""What became of the pods whose node was taken back, node by node: made of the notices that they were given. Pure.

What a pod lost is counted from its job's last save that the fleet knows of, or from when its attempt began to run: a checkpoint
of which nothing was reported makes it less.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

LONGEST = timedelta(hours=1)
"""Later notices of a node are of another reclaim, whatever the deadline of the first says: members write what they like."""


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
    """When its attempt began to run, by the clock of the fleet; None: it had not."""
    until: datetime | None = None
    """Its deadline by the clock of the fleet. The other times are by that of its member, which may be another."""

    def outcome(self, now: datetime) -> Outcome:
        if self.saved_step is not None:
            return Outcome.SAVED
        if self.left_at is None and now < (self.until or self.deadline):
            return Outcome.LEAVING
        heard = self.heard_at is not None and self.left_at is not None and self.left_at <= self.deadline
        return Outcome.SAVED if heard else Outcome.LOST

    @property
    def ended(self) -> datetime:
        return self.left_at or self.deadline

    @property
    def ended_by_fleet(self) -> datetime:
        return self.left_at or self.until or self.deadline


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


class _Saves:
    """When the pods of an attempt saved."""

    def __init__(self, rows: Iterable[NoticeOfPod]) -> None:
        rows = list(rows)
        self._ends = sorted(row.ended for row in rows)
        self._latest_of = dict[datetime, datetime]()
        for row in rows:
            self._latest_of[row.at] = max(row.ended, self._latest_of.get(row.at, row.ended))

    def last_before(self, row: NoticeOfPod) -> datetime | None:
        """What one pod saves in answer to the same notice is the work of all of them."""
        before = bisect_right(self._ends, row.ended)
        moments = [self._ends[before - 1] if before else None, self._latest_of.get(row.at)]
        return max((moment for moment in moments if moment), default=None)


def of_notices(notices: Iterable[NoticeOfPod], now: datetime) -> list[Reclaim]:
    """The reclaims, the latest first. Notices of a node are of one reclaim until the first of their deadlines is over."""
    rows = sorted(notices, key=lambda row: (row.at, row.pod))
    saved = defaultdict[tuple[int, int], list[NoticeOfPod]](list)
    for row in rows:
        if row.outcome(now) is Outcome.SAVED:
            saved[row.job, row.attempt].append(row)
    saves = {attempt: _Saves(of_attempt) for attempt, of_attempt in saved.items()}
    latest = dict[str, Reclaim]()
    reclaims: list[Reclaim] = []
    for row in rows:
        reclaim = latest.get(row.node)
        if reclaim is None or row.at > min(reclaim.deadline, reclaim.at + LONGEST):
            reclaim = latest[row.node] = Reclaim(row.node, row.cause, row.at, row.deadline)
            reclaims.append(reclaim)
        outcome = row.outcome(now)
        lost = _lost_s(row, saves.get((row.job, row.attempt))) if outcome is Outcome.LOST else 0.0
        reclaim.pods.append(PodOfReclaim(row, outcome, lost * row.gpus))
    return reclaims[::-1]


def _lost_s(row: NoticeOfPod, saves: _Saves | None) -> float:
    """A time of the member is compared with one of the member, and one of the fleet with one of the fleet."""
    saved_at = saves.last_before(row) if saves else None
    since_save = [row.ended - saved_at] if saved_at else []
    since_begin = [row.ended_by_fleet - row.began] if row.began else []
    return max(min([*since_save, *since_begin], default=timedelta()).total_seconds(), 0.0)
