"""Decides whether a process is wedged, from its own signs of life and the processor time it used. Pure: no clock is read.

A silent process is *stalled* when it neither ran nor waited for a processor: more time will not help it. One that runs is
slow, and waits its turn however busy the machine is, until it has burnt so much processor time in silence that it must be
in an endless loop. Wall-clock time alone therefore never ends a process that makes progress.
"""

from dataclasses import dataclass

STALLED_S = 90.0
"""Silent and idle this long, it is stalled."""
SPINNING_S = 120.0
"""Processor time used in one silence after which it is taken for an endless loop."""
WORKING_SHARE = 0.1
"""Of a silence, what must be spent running, or waiting to run, for it to count as work: helper threads use less."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What a process has cost so far."""

    cpu_s: float = 0.0
    """Time on a processor."""
    delay_s: float = 0.0
    """Time ready to run while others had the processors; zero where the kernel does not say."""

    @property
    def busy_s(self) -> float:
        return self.cpu_s + self.delay_s


@dataclass(frozen=True, slots=True)
class Liveness:
    """One process's silence so far."""

    since: Effort = Effort()
    silent_s: float = 0.0

    def heard(self, effort: Effort) -> "Liveness":
        """It gave a sign of life."""
        return Liveness(effort)

    def silent(self, elapsed_s: float, at_most_s: float) -> "Liveness":
        """It gave none since the last look. A look that came late itself counts no more than ``at_most_s``: the whole
        machine may have been frozen."""
        return Liveness(self.since, self.silent_s + min(elapsed_s, at_most_s))

    def fault(self, effort: Effort, stalled_s: float = STALLED_S) -> str:
        """Why it must be ended, or an empty text."""
        cpu_s = effort.cpu_s - self.since.cpu_s
        if cpu_s >= SPINNING_S:
            return f"no sign of life in {cpu_s:.0f} s of processor time"
        worked = effort.busy_s - self.since.busy_s >= WORKING_SHARE * self.silent_s
        if self.silent_s >= stalled_s and not worked:
            return f"neither a sign of life nor work for {self.silent_s:.0f} s"
        return ""
