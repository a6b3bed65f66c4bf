"""Plays a scenario or a spot market: injects faults into members at their times, counted from the start of the simulator."""

import logging
import threading
from collections.abc import Callable, Iterable

from simulator.fault_parser import Fault, Step
from simulator.machinery.clock import Clock

log = logging.getLogger(__name__)


class Player:
    def __init__(self, steps: Iterable[Step], act: Callable[[str, Fault], str], clock: Clock) -> None:
        self._steps, self._act, self._clock = steps, act, clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._play, name="scenario", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def _play(self) -> None:
        began = self._clock.now()
        for step in self._steps:
            due = began + self._clock.real(step.at_s)
            if self._stop.wait(max(due - self._clock.now(), 0.0)):
                return
            try:
                log.info("scenario: %s", self._act(step.member, step.fault))
            except ValueError as e:
                log.warning("scenario: %s: %s", step.member, e)
