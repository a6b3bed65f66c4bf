"""An incident from its signal to the last job that runs again: the steps in order, and what was lost.

What is counted: the time in which a job did not run because of the incident, and the time that the attempt had run before. The
second is repeated, except for what the program saved, which is known of programs that report their steps. No I/O.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from jobs.core.failover.incidents import OUTAGES, IncidentKind


class Stage(StrEnum):
    OPEN = "Open"
    """The cause lasts."""
    RECOVERING = "Recovering"
    """The cause is over, and jobs still wait because of it."""
    OVER = "Over"


class What(StrEnum):
    SIGNAL = "Signal"
    DECLARED = "Declared"
    LEFT = "Left"
    """The job's attempt was closed."""
    PLACED = "Placed"
    """The job's next attempt was placed."""
    RUNNING = "Running"
    """All pods of the next attempt run."""
    RETURNED = "Returned"
    """The cluster recovered before the job was placed elsewhere: the attempt that it had left goes on."""
    CAUSE_OVER = "CauseOver"
    EXPECTED = "LeavesAt"
    """Until when the job stays, unless the cause is over before."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The incident itself."""

    uid: str
    kind: IncidentKind
    cluster: str
    nodes: Sequence[str]
    reason: str
    message: str
    began_at: datetime
    declared_at: datetime
    over_at: datetime | None


@dataclass(frozen=True, slots=True)
class Affected:
    """An attempt that the incident ended, and what became of its job."""

    job: str
    """Its uid."""
    kind: str
    """Of its manifest."""
    namespace: str
    name: str
    gpus: int
    attempt: int
    cluster: str
    placed_at: datetime
    started_at: datetime | None
    ended_at: datetime
    outcome: str
    cause: str
    message: str
    state: str
    """The job's state now."""
    waits: bool
    """Whether the job still waits for its next attempt."""
    reason: Mapping[str, Any] | None = None
    """If it waits: its reason now, as `jobs.core.reasons.Reason.as_json`."""
    saved_step: int | None = None
    """The last step that the program reported as saved. None: it reported none."""
    next_attempt: int | None = None
    next_cluster: str = ""
    next_placed_at: datetime | None = None
    back_at: datetime | None = None
    """When all pods of the next attempt ran."""
    stopped_s: float = 0.0
    """Seconds in which it did not run because of the incident."""
    ran_s: float = 0.0
    """Seconds that the attempt had run before: repeated, except for what the program saved."""

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def why(self) -> str:
        return str((self.reason or {}).get("message", ""))


@dataclass(frozen=True, slots=True)
class Staying:
    """A job that is still on the cluster of an outage."""

    job: str
    namespace: str
    name: str
    gpus: int
    leaves_at: datetime | None
    """None: it stays for as long as the outage lasts, by its policy or because the fault is ours."""

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Returned:
    """An attempt that the job had left in an outage, and that went on when the cluster had recovered."""

    job: str
    namespace: str
    name: str
    attempt: int
    left_at: datetime
    returned_at: datetime


@dataclass(frozen=True, slots=True)
class Story:
    facts: Facts
    now: datetime
    affected: Sequence[Affected] = ()
    staying: Sequence[Staying] = ()
    returned: Sequence[Returned] = ()
    is_cut: bool = False
    """Whether there are more attempts, more that went on, or more jobs that stay, than are listed."""
    other_jobs: int = 0
    """Jobs of namespaces that the reader may not see."""

    @property
    def waiting(self) -> Sequence[Affected]:
        return [each for each in self.affected if each.waits]

    @property
    def stage(self) -> Stage:
        return stage(self.facts.over_at, len(self.waiting))

    @property
    def gpu_minutes_stopped(self) -> float:
        return sum(each.gpus * each.stopped_s for each in self.affected) / 60

    @property
    def gpu_minutes_repeated(self) -> float:
        return sum(each.gpus * each.ran_s for each in self.affected) / 60


@dataclass(frozen=True, slots=True)
class Step:
    at: datetime
    what: What
    job: str = ""
    """The uid, for a step of one job."""
    namespace: str = ""
    name: str = ""
    cluster: str = ""
    attempt: int | None = None
    message: str = field(default="", compare=False)

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}" if self.job else ""


def stage(over_at: datetime | None, waiting: int) -> Stage:
    if over_at is None:
        return Stage.OPEN
    return Stage.RECOVERING if waiting else Stage.OVER


def loss_of(
    began_at: datetime, kind: IncidentKind, lost: Affected, now: datetime, *, is_finished: bool
) -> tuple[float, float]:
    """How long the job was stopped, and how long the attempt had run before, in seconds.

    A cluster that fell silent may have run the job on for a while; it was not seen, so the job counts as stopped from the
    first signal. A job that has ended counts as stopped until its attempt was closed.
    """
    since = max(began_at, lost.placed_at) if kind in OUTAGES else lost.ended_at
    until = lost.back_at or (now if lost.waits or (lost.next_attempt and not is_finished) else lost.ended_at)
    ran_until = min(since, lost.ended_at)
    ran_s = (ran_until - lost.started_at).total_seconds() if lost.started_at else 0.0
    return max(0.0, (until - since).total_seconds()), max(0.0, ran_s)


def steps(story: Story) -> list[Step]:
    """Everything that has happened, in order; then when the jobs that are still there leave."""
    happened = sorted(_happened(story), key=lambda step: step.at)
    leaving = [
        Step(each.leaves_at, What.EXPECTED, each.job, each.namespace, each.name, story.facts.cluster)
        for each in story.staying
        if each.leaves_at
    ]
    return happened + sorted(leaving, key=lambda step: step.at)


def _happened(story: Story) -> Iterator[Step]:
    facts = story.facts
    if facts.kind in OUTAGES:
        yield Step(facts.began_at, What.SIGNAL, cluster=facts.cluster)
        yield Step(facts.declared_at, What.DECLARED, cluster=facts.cluster, message=facts.message)
    for each in story.affected:
        about = (each.job, each.namespace, each.name)
        yield Step(each.ended_at, What.LEFT, *about, each.cluster, each.attempt, each.message)
        if each.next_placed_at:
            yield Step(each.next_placed_at, What.PLACED, *about, each.next_cluster, each.next_attempt)
        if each.back_at:
            yield Step(each.back_at, What.RUNNING, *about, each.next_cluster, each.next_attempt)
    for back in story.returned:
        left = (back.job, back.namespace, back.name, facts.cluster, back.attempt)
        yield Step(back.left_at, What.LEFT, *left)
        yield Step(back.returned_at, What.RETURNED, *left)
    if facts.over_at:
        yield Step(facts.over_at, What.CAUSE_OVER, cluster=facts.cluster)
