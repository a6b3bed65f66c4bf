"""Kills a worker at each step of a work, and what must hold after the next one took over."""

import os
import subprocess
import sys
from datetime import timedelta

from django.conf import settings
from django.db import connection
from django.utils import timezone

from jobs.models import Work
from jobs.services.dispatch import dispatcher


class Killer:
    """A process that is started once for a file: to load the product takes longer than many a kill."""

    def __init__(self, module: str = "tests.support.killer") -> None:
        environment = {
            **os.environ,
            "KILLER_DATABASE": str(connection.settings_dict["NAME"]),
            "CONVOY_ENCRYPTION_KEYS": ",".join(settings.CONVOY_ENCRYPTION_KEYS),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self._process.stdout.readline() == "ready\n"

    def ask(self, *words: object) -> str:
        print(*words, file=self._process.stdin, flush=True)
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(60)


def recover(work: Work) -> None:
    """What the sweep does once the dead worker's claim has grown old."""
    Work.objects.filter(pk=work.pk).exclude(claim="").update(claimed_at=timezone.now() - timedelta(hours=1))
    for _ in range(20):
        Work.objects.filter(pk=work.pk).update(due_at=timezone.now())
        dispatcher.push(work.pk, timezone.now)
        now = Work.objects.filter(pk=work.pk).first()
        if now is None or now.state == Work.State.APPLIED:
            return


def every_step(killer: Killer, works) -> int:
    """Kills at step 1, 2, 3 ... of a fresh work each, until a run gets through; returns how many steps there were."""
    for step, work in enumerate(works, 1):
        outcome = killer.ask(work.pk, step)
        if outcome == "done":
            return step
        assert outcome == "killed", outcome
        recover(work)
    raise AssertionError("never got through")
