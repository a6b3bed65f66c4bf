"""Who had the job in hand, and how long: one bar from submitted to done, and the gates it has to pass. Pure.

A job that waits is held up by one stage: its queue, its quota, or the placement. Those turns are kept with the job as they
change; everything else is read from its attempts. What the reasons say in words is not repeated here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from jobs.core.failover.rules import Outcome
from jobs.core.reasons import Code

_KEPT = 100
"""Turns kept with a job: the latest."""


class Owner(StrEnum):
    POLICY = "policy"
    QUEUE = "queue"
    QUOTA = "quota"
    PLACEMENT = "placement"
    MEMBER = "member"
    IMAGE = "image"
    RUNNING = "running"
    MOVING = "moving"
    SUSPENDED = "suspended"


class Gate(StrEnum):
    POLICY = "policy"
    QUEUE = "queue"
    QUOTA = "quota"
    PLACEMENT = "placement"
    MEMBER = "member"
    PODS = "pods"


class Passage(StrEnum):
    PASSED = "passed"
    NOW = "now"
    NEXT = "next"


_OF_CODE: Mapping[Code, Gate] = {
    Code.NO_POLICY: Gate.POLICY,
    Code.SCHEDULING_SUSPENDED: Gate.POLICY,
    Code.WAITING_FOR_SCHEDULER: Gate.QUEUE,
    Code.SUSPENDED: Gate.QUEUE,
    Code.BEHIND_IN_QUEUE: Gate.QUEUE,
    Code.QUEUE_HELD: Gate.QUEUE,
    Code.WAITING_FOR_JOB: Gate.QUEUE,
    Code.PREDECESSOR_FAILED: Gate.QUEUE,
    Code.NO_QUOTA_FOR_NAMESPACE: Gate.QUOTA,
    Code.QUOTA_EXCEEDED: Gate.QUOTA,
    Code.BUDGET_SPENT: Gate.QUOTA,
    Code.WINDOW_AHEAD: Gate.QUOTA,
    Code.MAX_JOBS_REACHED: Gate.QUOTA,
    Code.WAITING_FOR_RECLAIM: Gate.QUOTA,
    Code.RECLAIMED: Gate.QUOTA,
    Code.WAITING_FOR_MEMBER: Gate.MEMBER,
    Code.MEMBER_REFUSED: Gate.MEMBER,
    Code.WAITING_FOR_PURGE: Gate.MEMBER,
    Code.WAITING_FOR_PODS: Gate.PODS,
    Code.APPLICATION_UNHEALTHY: Gate.PODS,
    Code.COPY_VANISHED: Gate.PODS,
}
_NEXT_OWNER: Mapping[str, Owner | None] = {
    Outcome.SUCCEEDED: None,
    Outcome.DELETED: None,
    Outcome.SUSPENDED: Owner.SUSPENDED,
    Outcome.RECLAIMED: Owner.QUOTA,
    Outcome.TIMED_OUT: None,
}


@dataclass(frozen=True, slots=True)
class Turn:
    """From then on it was this owner's."""

    owner: Owner
    at: datetime


@dataclass(frozen=True, slots=True)
class Run:
    """An attempt, as far as its times matter."""

    number: int
    cluster: str
    placed_at: datetime
    pods_at: datetime | None
    """When the last of its pods was made."""
    started_at: datetime | None
    ended_at: datetime | None
    outcome: str


@dataclass(frozen=True, slots=True)
class Slice:
    owner: Owner
    starts_at: datetime
    ends_at: datetime
    open: bool = False
    """It goes on: ``ends_at`` is now."""
    attempt: int = 0
    cluster: str = ""

    @property
    def seconds(self) -> float:
        return (self.ends_at - self.starts_at).total_seconds()


def gate_of(reason: Mapping[str, Any]) -> Gate:
    """Where a job with this reason stands; every other reason is one of placement."""
    code = reason.get("code", "")
    if code == Code.NEVER_FITS and (reason.get("quota") or {}).get("code") == code:
        return Gate.QUOTA
    return _OF_CODE.get(Code(code), Gate.PLACEMENT) if code in set(Code) else Gate.PLACEMENT


def gates_of(reason: Mapping[str, Any], *, through: bool) -> list[tuple[Gate, Passage]]:
    """The ladder of a job with this reason; ``through``: it runs or is done, and has passed them all."""
    order = list(Gate)
    now = len(order) if through else order.index(gate_of(reason))
    return [
        (gate, Passage.PASSED if place < now else Passage.NOW if place == now else Passage.NEXT)
        for place, gate in enumerate(order)
    ]


def owner_of(reason: Mapping[str, Any]) -> Owner:
    """In whose hands a waiting job with this reason is."""
    if reason.get("code") == Code.SUSPENDED:
        return Owner.SUSPENDED
    gate = gate_of(reason)
    return Owner(gate.value) if gate.value in set(Owner) else Owner.PLACEMENT


def enter_owner(turns: Sequence[Sequence[str]], owner: Owner, now: datetime) -> list[list[str]]:
    """The turns of a job, as they are kept with it, once this owner has it."""
    stored = [list(turn) for turn in turns]
    return stored if stored and stored[-1][0] == owner else [*stored, [owner.value, now.isoformat()]][-_KEPT:]


def parse_turns(stored: Sequence[Sequence[str]]) -> list[Turn]:
    return [Turn(Owner(owner), datetime.fromisoformat(at)) for owner, at in stored]


def slices_of(
    submitted: datetime, finished: datetime | None, waited: Sequence[Turn], runs: Sequence[Run], now: datetime
) -> list[Slice]:
    """Without a gap from ``submitted`` to ``finished``, or to now; a slice of no length is left out."""
    end = finished or now
    marks = sorted(_marks(submitted, waited, runs), key=lambda mark: mark[0].starts_at)
    slices: list[Slice] = []
    for place, (mark, owned) in enumerate(marks):
        until = min(marks[place + 1][0].starts_at if place + 1 < len(marks) else end, end)
        if not owned or until <= mark.starts_at:
            continue
        last = slices[-1] if slices else None
        if last and (last.owner, last.attempt, last.ends_at) == (mark.owner, mark.attempt, mark.starts_at):
            slices[-1] = replace(last, ends_at=until)
        else:
            slices.append(replace(mark, ends_at=until))
    if slices and finished is None and slices[-1].ends_at == end:
        slices[-1] = replace(slices[-1], open=True)
    return slices


def _marks(submitted: datetime, waited: Sequence[Turn], runs: Sequence[Run]) -> Iterator[tuple[Slice, bool]]:
    """Where a slice begins, and whether anybody has the job from then on."""
    yield Slice(Owner.QUEUE, submitted, submitted), True
    # A cycle that began before the job was written down reports it with its own time: nothing is older than the job.
    for turn in (replace(turn, at=max(turn.at, submitted)) for turn in waited):
        if not any(run.placed_at <= turn.at and (run.ended_at is None or turn.at < run.ended_at) for run in runs):
            moving = turn.owner is Owner.PLACEMENT and any(run.placed_at < turn.at for run in runs)
            yield Slice(Owner.MOVING if moving else turn.owner, turn.at, turn.at), True
    for run in runs:
        yield from _marks_of(run)


def _marks_of(run: Run) -> Iterator[tuple[Slice, bool]]:
    steps = [(Owner.MEMBER, run.placed_at), (Owner.IMAGE, run.pods_at), (Owner.RUNNING, run.started_at)]
    latest = run.placed_at
    for owner, at in steps:
        if at is None or (run.ended_at and at > run.ended_at):
            continue
        latest = max(latest, at)
        yield Slice(owner, latest, latest, attempt=run.number, cluster=run.cluster), True
    if run.ended_at:
        following = _NEXT_OWNER.get(run.outcome, Owner.MOVING)
        yield Slice(following or Owner.RUNNING, run.ended_at, run.ended_at), following is not None
