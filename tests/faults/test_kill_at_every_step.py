"""A worker is killed -9 at every line it executes while it dispatches, and while it withdraws.

Whatever the line: the sweep finds the work again, and in the end exactly one copy runs, or none is left.
"""

import os
import subprocess
import sys
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from jobs.models import Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.scheduling import loop
from jobs.services.submission import actions
from tests.support.world import POLICY, World, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}"


class Killer:
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
        self._process.wait(10)


@pytest.fixture
def killer(transactional_db):
    made = Killer()
    yield made
    made.close()


@pytest.fixture
def member(transactional_db, tmp_path):
    """One member that is joined and known, with nobody at work but the test."""
    world = World(tmp_path)
    world.still("north", 64)
    yield world
    for each in world.members.values():
        each.stop()


def placed(world: World, name: str) -> Work:
    job = pytorch_job(name, config_map="settings")
    world.apply(POLICY, CONFIG, job)
    assert loop.run(timezone.now) == 1
    return Work.objects.get(name=name)


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
    """Kills at line 1, 2, 3 ... of a fresh work each, until a run gets through; returns how many steps there were."""
    for line, work in enumerate(works, 1):
        outcome = killer.ask(work.pk, line)
        if outcome == "done":
            return line
        assert outcome == "killed", outcome
        recover(work)
    raise AssertionError("never got through")


def test_it_makes_exactly_one_copy_whatever_line_the_dispatching_worker_dies_at(member, killer):
    def works():
        for i in range(1000):
            yield placed(member, f"job-{i}")

    steps = every_step(killer, works())
    assert steps > 60
    jobs = Job.objects.exclude(name=f"job-{steps - 1}")
    assert set(jobs.values_list("state", flat=True)) == {"Dispatched"}
    copies = member.copies()["north"]
    assert sorted(copies) == sorted(Job.objects.values_list("name", flat=True))


def test_it_leaves_nothing_whatever_line_the_withdrawing_worker_dies_at(member, killer):
    def works():
        for i in range(1000):
            work = placed(member, f"job-{i}")
            dispatcher.push(work.pk, timezone.now)
            actions.delete(Job.objects.get(name=work.name), by="test", now=timezone.now())
            yield work

    steps = every_step(killer, works())
    assert steps > 20
    member.until(lambda: member.copies()["north"] in ([], [f"job-{steps - 1}"]), "copies are gone")
    assert Job.objects.exclude(name=f"job-{steps - 1}").count() == 0
