"""The same question to many clusters at once, each with its own deadline; a cluster that fails costs one line, not the rest."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from frontend.cli.amc.fleet import Failure, Fleet, Member
from frontend.cli.problems import Problem

Answer = TypeVar("Answer")

AT_ONCE = 16


@dataclass(slots=True)
class Gathered(Generic[Answer]):
    """What came back, by cluster, in the order asked."""

    answers: dict[str, Answer] = field(default_factory=dict)
    failures: dict[str, Problem] = field(default_factory=dict)

    @property
    def away(self) -> dict[str, Problem]:
        return {name: each for name, each in self.failures.items() if isinstance(each, Failure) and each.away}


def ask(
    fleet: Fleet, clusters: Sequence[str], question: Callable[[Member], Answer], deadline_s: float
) -> Gathered[Answer]:
    """Threads that are not waited for: one that hangs must not keep the person."""
    turns, settled = threading.Semaphore(AT_ONCE), threading.Condition()
    answers: dict[str, Answer] = {}
    failures: dict[str, Problem] = {}

    def run(name: str) -> None:
        with turns:
            try:
                outcome: Answer | Problem = question(fleet.member(name))
            except Problem as e:
                outcome = e
        with settled:
            if isinstance(outcome, Problem):
                failures[name] = outcome
            else:
                answers[name] = outcome
            settled.notify()

    for name in clusters:
        threading.Thread(target=run, args=(name,), daemon=True).start()
    end = time.monotonic() + deadline_s
    with settled:
        while len(answers) + len(failures) < len(clusters) and (left := end - time.monotonic()) > 0:
            settled.wait(left)
        silent = {name: Failure(f"no answer within {deadline_s:g} s") for name in clusters}
        known = {name: answers[name] for name in clusters if name in answers}
        return Gathered(known, {name: failures.get(name, silent[name]) for name in clusters if name not in known})
