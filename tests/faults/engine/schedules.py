"""What a seed means: which step of a job's life is waited for, what is struck then, how, and the details around it. Pure."""

import random
from dataclasses import dataclass
from enum import StrEnum

from tests.faults.engine.steps import RARE, STEPS

PAUSE_S = 6.0
"""Longer than every claim, lease and grace of the product under test (`timings`)."""
LATE_RETURN_S = 8.0
"""How long a process is stopped: until another one has taken over, and is done."""


class Target(StrEnum):
    WEB = "web"
    KUBE = "kube"
    WORKER = "worker"
    SCHEDULER = "scheduler"
    """The worker that ran the last cycle."""
    WATCHER = "watcher"
    BEAT = "beat"
    DATABASE = "database"
    BROKER = "broker"
    MEMBER = "member"
    CLOCK = "clock"
    """Of the process that reached the step, or of the PostgreSQL server, by which all processes go there."""


class Fault(StrEnum):
    KILL = "kill"
    """-9; a new one starts at once. A server recovers from its files, the broker is empty."""
    MISSING = "missing"
    """Killed; a new one starts after every lease has ended."""
    PAUSE = "pause"
    """Stopped for longer than every claim and lease, then continued: the late return."""
    DROP = "drop"
    """Connections are cut; the broker loses all messages; a member's answers are lost after it did what was asked."""
    AWAY = "away"
    """Every connection is refused."""
    CUT = "cut"
    """Requests are taken and never answered, watches stay silent: a partition."""
    SLOW = "slow"
    LATE = "late"
    """A member does what is asked after the caller has given up. In the end each creation arrives once more."""
    FLAKY = "flaky"
    OLD = "old"
    """The member returns restored from a backup: it has forgotten what happened since."""
    AHEAD = "ahead"
    BEHIND = "behind"


_OF_PROCESS = (Fault.KILL, Fault.PAUSE, Fault.MISSING)
_OF_SERVER = (Fault.KILL, Fault.PAUSE, Fault.DROP)
FAULTS = {
    **dict.fromkeys(
        (Target.WEB, Target.KUBE, Target.WORKER, Target.SCHEDULER, Target.WATCHER, Target.BEAT), _OF_PROCESS
    ),
    Target.DATABASE: _OF_SERVER,
    Target.BROKER: _OF_SERVER,
    Target.MEMBER: (Fault.AWAY, Fault.CUT, Fault.SLOW, Fault.LATE, Fault.FLAKY, Fault.DROP, Fault.OLD),
    Target.CLOCK: (Fault.AHEAD, Fault.BEHIND),
}
STRIKES = tuple((target, fault) for target, faults in FAULTS.items() for fault in faults)
_NOT_WITHOUT_SERVER = {(Target.DATABASE, fault) for fault in _OF_SERVER}
PURGES = ("Gracefully", "Directly")


@dataclass(frozen=True, slots=True)
class Strike:
    step: str
    call: int
    """The strike comes at this call of the step, counted over all processes once the jobs are being submitted."""
    target: Target
    fault: Fault
    lasts_s: float


@dataclass(frozen=True, slots=True)
class Schedule:
    seed: int
    strikes: tuple[Strike, ...]
    purge: str
    queued: bool
    """Whether the policy hands jobs back to their queue (``suspension.scheduling``) when they leave a cluster."""
    toleration_s: int

    def __str__(self) -> str:
        strikes = ", then ".join(f"{s.target} {s.fault} at {s.step}#{s.call}" for s in self.strikes)
        return f"{strikes} (purge {self.purge}{', queued' if self.queued else ''})"


def schedule(seed: int, *, server: bool) -> Schedule:
    """``server``: whether the database is a server that can be struck; an SQLite file cannot."""
    dice = random.Random(seed)
    strikes = [_strike(seed, dice, server)]
    if dice.random() < 0.25:
        strikes.append(_strike(dice.randrange(10**6), dice, server))
    return Schedule(
        seed, tuple(strikes), purge=dice.choice(PURGES), queued=dice.random() < 0.4, toleration_s=dice.choice((0, 1, 3))
    )


def _strike(number: int, dice: random.Random, server: bool) -> Strike:
    """Counts through the grid: a row of it has every target with every fault, and all rows together have each cell once."""
    possible = [pair for pair in STRIKES if server or pair not in _NOT_WITHOUT_SERVER]
    row, column = divmod(number, len(possible))
    target, fault = possible[column]
    # Both factors share no divisor with the number of steps: each pair meets another step in every row.
    step = STEPS[(7 * column + 5 * row) % len(STEPS)]
    lasts_s = 0.0 if fault is Fault.KILL else PAUSE_S * dice.choice((0.5, 1.0, 1.0))
    if fault is Fault.PAUSE and target not in (Target.DATABASE, Target.BROKER):
        lasts_s = LATE_RETURN_S
    calls = (1,) if step.function in RARE else (1, 1, 2, 3, 5)
    return Strike(step.name, dice.choice(calls), target, fault, lasts_s)
