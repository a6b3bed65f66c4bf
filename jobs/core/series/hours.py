"""GPU-time of runs within a time, added up by what they belong to: exactly, in whole GPU-milliseconds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from jobs.core.series.catalogue import Metric
from jobs.core.series.recount import Run, spans


@dataclass(slots=True)
class GpuTime:
    used_ms: int = 0
    """While they ran."""
    held_ms: int = 0
    """From their placement to their start."""
    runs: int = 0

    @property
    def total_ms(self) -> int:
        return self.used_ms + self.held_ms


def add_up(runs: Iterable[Run], begin_ms: int, end_ms: int, name_of: Callable[[Run], str]) -> dict[str, GpuTime]:
    """Of ``[begin_ms, end_ms)``, by name. Runs without GPU-time in it are left out."""
    times: dict[str, GpuTime] = {}
    for run in runs:
        parts = {Metric.HELD: 0, Metric.USED: 0}
        for metric, gpus, since, until in spans(run):
            parts[metric] += gpus * max(0, min(until, end_ms) - max(since, begin_ms))
        if any(parts.values()):
            time = times.setdefault(name_of(run), GpuTime())
            time.used_ms += parts[Metric.USED]
            time.held_ms += parts[Metric.HELD]
            time.runs += 1
    return times
