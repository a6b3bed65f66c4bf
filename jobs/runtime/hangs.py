"""When a training has made no step for too long: its pace, learned from its reports, and the silence that is too long. Pure.

A training is never judged before the second step that it reports: compiling and loading may take any time. Silence in which a
checkpoint may be saved is allowed for as long as its longest one took. Times are seconds since the epoch.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from jobs.runtime import lines
from jobs.runtime.lines import number

TIMES_A_STEP = 10.0
LONGEST_S = 30 * 86400.0
"""No silence that is longer is waited for."""
_WEIGHT = 0.2
"""Of the latest steps in the mean."""
_OWN = ("convoy.silence", "convoy.stack")
"""Lines of `convoy_runtime` about a silence, which do not end it."""


@dataclass(frozen=True, slots=True)
class Pace:
    step: int
    at: float
    """When that step was first reported."""
    saved_step: int | None = None
    mean_s: float | None = None
    """Of one step; None before the second one."""
    saving_s: float = 0.0
    """What its checkpoints have taken in all, beyond the steps beside them."""
    longest_save_s: float = 0.0

    def limit_s(self, least_s: float) -> float | None:
        """The silence that is too long; None: it is not judged yet."""
        if self.mean_s is None:
            return None
        return min(max(least_s, TIMES_A_STEP * self.mean_s) + self.longest_save_s, LONGEST_S)

    def after(self, step: int, saved_step: int | None, at: float) -> "Pace":
        """The pace after a report. A step that is lower begins anew: the processes were started again."""
        if step < self.step:
            return Pace(step, at, saved_step, saving_s=self.saving_s, longest_save_s=self.longest_save_s)
        if step == self.step or at <= self.at:
            return replace(self, saved_step=saved_step)
        took = at - self.at
        if saved_step != self.saved_step and self.mean_s is not None:
            saving_s = max(took - self.mean_s * (step - self.step), 0.0)
            longest_s = max(self.longest_save_s, saving_s)
            return Pace(step, at, saved_step, self.mean_s, self.saving_s + saving_s, longest_s)
        each = took / (step - self.step)
        mean = each if self.mean_s is None else self.mean_s + _WEIGHT * (each - self.mean_s)
        return replace(self, step=step, at=at, saved_step=saved_step, mean_s=mean)


def first(step: int, saved_step: int | None, at: float) -> Pace:
    return Pace(step, at, saved_step)


@dataclass(frozen=True, slots=True)
class Signs:
    """What a log says of a silence."""

    written_at: datetime | None = None
    """When its last line was written that is not about a silence; None: no line has a time."""
    silent_step: int | None = None
    """The step after which the training says itself that it is silent; None: it does not, or goes on."""


def signs(log: str) -> Signs:
    """``log`` has the times at which the kubelet received its lines."""
    written_at, silent = None, None
    for line in log.split("\n"):
        written, at = lines.without_stamp(line[: lines.LONGEST + 40])
        event = lines.json_object(written) if written.startswith('{"name":"convoy.') else {}
        if event.get("name") == _OWN[0]:
            silent = number(event.get("step"))
        elif event.get("name") not in _OWN:
            written_at = at or written_at
            silent = None if event.get("name") == "convoy.resumed" else silent
    return Signs(written_at, silent)
