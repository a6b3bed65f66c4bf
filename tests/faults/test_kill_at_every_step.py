"""A worker is killed -9 before and after every write while it dispatches, and while it withdraws.

Whatever the step: the sweep finds the work again, and in the end exactly one copy runs, or none is left.
"""

import pytest
from django.utils import timezone

from jobs.models import Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.scheduling import loop
from jobs.services.submission.changes import actions
from tests.faults.builders import Killer, every_step
from tests.support.world import POLICY, World, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}"


@pytest.fixture(scope="module")
def killer(django_db_setup):
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


def test_it_makes_exactly_one_copy_whatever_step_the_dispatching_worker_dies_at(member, killer):
    def works():
        for i in range(1000):
            yield placed(member, f"job-{i}")

    steps = every_step(killer, works())
    assert steps > 12
    jobs = Job.objects.exclude(name=f"job-{steps - 1}")
    assert set(jobs.values_list("state", flat=True)) == {"Dispatched"}
    copies = member.copies()["north"]
    assert sorted(copies) == sorted(Job.objects.values_list("name", flat=True))


def test_it_leaves_nothing_whatever_step_the_withdrawing_worker_dies_at(member, killer):
    def works():
        for i in range(1000):
            work = placed(member, f"job-{i}")
            dispatcher.push(work.pk, timezone.now)
            actions.delete(Job.objects.get(name=work.name), by="test", now=timezone.now())
            yield work

    steps = every_step(killer, works())
    assert steps > 6
    member.until(lambda: member.copies()["north"] in ([], [f"job-{steps - 1}"]), "copies are gone")
    assert Job.objects.exclude(name=f"job-{steps - 1}").count() == 0
