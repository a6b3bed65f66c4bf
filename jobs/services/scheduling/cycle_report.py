"""One log line and the metrics of one scheduling cycle: what it decided, and how long each step took."""

from time import perf_counter

from structlog import get_logger

from jobs import metrics

log = get_logger(__name__)
STEPS = ("snapshot", "stopped_queues", "plan", "preemption", "adopt", "apply", "cache")


class CycleReport:
    """Measures from its creation; `step` ends the step of `STEPS` in progress, `done` ends the cycle."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self._began = self._mark = perf_counter()
        self._seconds: dict[str, float] = {}

    def step(self, name: str) -> None:
        now = perf_counter()
        self._seconds[name] = self._seconds.get(name, 0.0) + now - self._mark
        self._mark = now

    def done(self, *, placed: int, waiting: int, preempted: int, dropped: bool = False) -> None:
        """``dropped``: the lease was lost, so that nothing of the plan was written."""
        result = "dropped" if dropped else "success" if placed else "inadmissible"
        seconds = perf_counter() - self._began
        metrics.ADMISSION_ATTEMPTS.labels(result).inc()
        metrics.ADMISSION_ATTEMPT_SECONDS.labels(result).observe(seconds)
        for name, took in self._seconds.items():
            metrics.CYCLE_STEP_SECONDS.labels(name).observe(took)
        steps = {f"{name}_ms": round(took * 1000, 1) for name, took in self._seconds.items()}
        write = log.warning if dropped else log.info
        write(
            "scheduling cycle",
            epoch=self._epoch,
            result=result,
            placed=placed,
            waiting=waiting,
            preempted=preempted,
            total_ms=round(seconds * 1000, 1),
            **steps,
        )
