"""Answers of checks that read many rows, kept for some seconds: a page that many people leave open asks the database once.

While one request asks again, others are given the former answer, so that a slow check holds one thread of the process.
"""

import threading
import time
from collections.abc import Callable

from fleet.api.http.probes import Check, run_check

FRESH_S = 10.0
Problem = Callable[[], str]


class RecentChecks:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._answers: dict[Problem, tuple[float, Check]] = {}
        self._locks: dict[Problem, threading.Lock] = {}

    def run(self, problem: Problem) -> Check:
        """The check's answer, which is at most `FRESH_S` old unless it is being asked for now."""
        if (recent := self._recent(problem)) is not None:
            return recent
        lock = self._locks.setdefault(problem, threading.Lock())
        former = self._answers.get(problem)
        if former is not None and lock.locked():
            return former[1]
        with lock:
            return self._recent(problem) or self._ask(problem)

    def forget(self) -> None:
        """The next request asks again."""
        self._answers.clear()

    def _recent(self, problem: Problem) -> Check | None:
        asked_at, check = self._answers.get(problem, (float("-inf"), None))
        return check if self._clock() - asked_at < FRESH_S else None

    def _ask(self, problem: Problem) -> Check:
        check = run_check(problem)
        self._answers[problem] = self._clock(), check
        return check


RECENT = RecentChecks()
