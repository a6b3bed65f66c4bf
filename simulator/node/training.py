"""A job that is pretended to train: its steps, its checkpoints, and what starting again costs. Pure; times are real seconds.

It is as fast as it has workers. Whenever one comes or leaves, all of them start again: from where they were if the worker had
time to save, from the last checkpoint otherwise.
"""

from bisect import bisect_right
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Pace:
    step_s: float
    """Of one worker."""
    checkpoint_s: float
    """Between checkpoints. 0: it saves only when it is asked to stop."""
    restart_s: float
    save_s: float
    steps: int
    """After which it is complete. 0: it trains for ever."""


@dataclass(slots=True)
class Training:
    pace: Pace
    saved: float = 0.0
    """The step of the latest checkpoint."""
    workers: set[str] = field(default_factory=set)
    marks: list[tuple[float, str]] = field(default_factory=list)
    """What its log says besides the steps, in order of time."""
    _since: list[float] = field(default_factory=list)
    _steps: list[tuple[float, float]] = field(default_factory=list)
    """From each moment of ``_since`` on: the step, and steps in a second."""
    _checkpoint_at: float = 0.0

    def step_at(self, moment: float) -> float:
        index = bisect_right(self._since, moment) - 1
        if index < 0:
            return self.saved
        step, rate = self._steps[index]
        reached = step + rate * (moment - self._since[index])
        return min(reached, self.pace.steps) if self.pace.steps else reached

    def workers_at(self, moment: float) -> int:
        index = bisect_right(self._since, moment) - 1
        return round(self._steps[index][1] * self.pace.step_s) if index >= 0 else 0

    def ends_at(self) -> float | None:
        """When it is complete with the workers that it has. None: not while it is so."""
        if not (self.pace.steps and self._since and self._steps[-1][1]):
            return None
        step, rate = self._steps[-1]
        return self._since[-1] + max(self.pace.steps - step, 0.0) / rate

    def is_complete(self, now: float) -> bool:
        return bool(self.pace.steps) and bool(self._since) and self.step_at(now) >= self.pace.steps

    def checkpoint(self, now: float) -> float | None:
        """Takes the checkpoints that are due, and returns when the next one is."""
        if not (self.pace.checkpoint_s and self.workers):
            return None
        passed = int((now - self._checkpoint_at) / self.pace.checkpoint_s)
        if passed > 0:
            self._checkpoint_at += passed * self.pace.checkpoint_s
            self.saved = max(self.saved, self.step_at(self._checkpoint_at))
        return self._checkpoint_at + self.pace.checkpoint_s

    def join(self, worker: str, now: float) -> None:
        if worker in self.workers:
            return
        self.checkpoint(now)
        step = self.step_at(now)
        self.workers.add(worker)
        self._start(step, now)
        if step:
            self.marks.append((now, f"{worker} has joined: {len(self.workers)} workers go on from step {int(step)}"))

    def leave(self, worker: str, now: float, *, saved: bool) -> None:
        """``saved``: it had the time to save. Otherwise what the job did since its last checkpoint is lost."""
        if worker not in self.workers:
            return
        self.checkpoint(now)
        reached = self.step_at(now)
        if saved:
            self.saved = reached
        self.workers.discard(worker)
        if self.is_complete(now):
            return
        self._start(self.saved, now)
        how = f"saved step {int(reached)}" if saved else f"was killed at step {int(reached)}"
        words = f"{worker} {how} and left: {len(self.workers)} workers go on from step {int(self.saved)}"
        self.marks.append((now, words))

    def _start(self, step: float, now: float) -> None:
        """All workers (re)start at this step; the first start of all costs nothing beyond the containers' own."""
        begins = now + (self.pace.restart_s if step else 0.0)
        if self._since and self._since[-1] > now:
            # A restart that was under way begins anew: the moment at which it would have ended does not come.
            del self._since[-1], self._steps[-1]
        if begins > now:
            self._note(now, step, 0.0)
        self._note(begins, step, len(self.workers) / self.pace.step_s)
        self._checkpoint_at = begins

    def _note(self, moment: float, step: float, rate: float) -> None:
        if self._since and self._since[-1] == moment:
            self._steps[-1] = (step, rate)
        else:
            self._since.append(moment)
            self._steps.append((step, rate))
