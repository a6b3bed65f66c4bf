"""The signs of life of worker and beat: each from its own loop, so that neither is judged by the other or by the broker."""

from typing import Any

from celery import bootsteps
from celery.beat import PersistentScheduler

from fleet import heartbeat


class WorkerHeartbeat(bootsteps.StartStopStep):
    """Beats from the loop that takes tasks from the broker, on each connection anew."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, consumer: Any, **_: Any) -> None:
        self.entry: Any = None

    def start(self, consumer: Any) -> None:
        heartbeat.beat()
        self.entry = consumer.timer.call_repeatedly(heartbeat.EVERY_S, heartbeat.beat)

    def stop(self, consumer: Any) -> None:
        if self.entry is not None:
            self.entry.cancel()
            self.entry = None

    shutdown = stop


class Scheduler(PersistentScheduler):
    """Beats with each tick of the schedule, at least once a second."""

    max_interval = int(heartbeat.EVERY_S)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        heartbeat.beat()
        wait_s: float = super().tick(*args, **kwargs)
        return min(wait_s, heartbeat.EVERY_S)
