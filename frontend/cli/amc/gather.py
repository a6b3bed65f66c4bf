"""Runs the same query on many clusters in parallel, with a common deadline. A failing cluster does not affect the others."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from frontend.cli.amc.fleet import Failure, Fleet, Member
from frontend.cli.problems import Problem

Answer = TypeVar("Answer")

MAX_PARALLEL = 16


@dataclass(slots=True)
class Gathered(Generic[Answer]):
    """The answers and failures by cluster, in the order of the request."""

    answers: dict[str, Answer] = field(default_factory=dict)
    failures: dict[str, Problem] = field(default_factory=dict)

    @property
    def away(self) -> dict[str, Problem]:
        """The failures of clusters that did not answer."""
        failures = self.failures.items()
        return {name: problem for name, problem in failures if isinstance(problem, Failure) and problem.away}


def ask(
    fleet: Fleet, clusters: Sequence[str], query: Callable[[Member], Answer], deadline_s: float
) -> Gathered[Answer]:
    """Runs the query on each cluster in a daemon thread. Threads that exceed the deadline are not waited for."""
    slots, changed = threading.Semaphore(MAX_PARALLEL), threading.Condition()
    answers: dict[str, Answer] = {}
    failures: dict[str, Problem] = {}

    def run(name: str) -> None:
        with slots:
            try:
                outcome: Answer | Problem = query(fleet.member(name))
            except Problem as e:
                outcome = e
        with changed:
            if isinstance(outcome, Problem):
                failures[name] = outcome
            else:
                answers[name] = outcome
            changed.notify()

    for name in clusters:
        threading.Thread(target=run, args=(name,), daemon=True).start()
    end = time.monotonic() + deadline_s
    with changed:
        while len(answers) + len(failures) < len(clusters) and (remaining_s := end - time.monotonic()) > 0:
            changed.wait(remaining_s)
        silent = {name: Failure(f"no answer within {deadline_s:g} s") for name in clusters}
        known = {name: answers[name] for name in clusters if name in answers}
        return Gathered(known, {name: failures.get(name, silent[name]) for name in clusters if name not in known})
