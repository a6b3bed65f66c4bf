"""A worker is killed -9 at every step while it sends one share of a divided job: every share is sent once, whole."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.models import Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.scheduling import loop
from tests.faults.builders import Killer, recover
from tests.support.division import BY_ROOM, copies, sweep_job
from tests.support.world import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def killer(django_db_setup):
    made = Killer()
    yield made
    made.close()


@pytest.fixture
def members(transactional_db, tmp_path):
    """Two members that are joined and known, with nobody at work but the test."""
    world = World(tmp_path)
    world.still("north", 64)
    world.still("south", 64)
    yield world
    for each in world.members.values():
        each.stop()


def test_it_sends_every_share_once_whatever_step_a_worker_dies_at(members, killer):
    members.apply(BY_ROOM)
    for step in range(1, 1000):
        members.apply(sweep_job(f"sweep-{step}", pods=6))
        assert loop.run(timezone.now) == 1
        first, second = Work.objects.filter(name=f"sweep-{step}").order_by("attempt")
        dispatcher.push(second.pk, timezone.now)
        outcome = killer.ask(first.pk, step)
        recover(first)
        if outcome == "done":
            break
        assert outcome == "killed"
    assert step > 12
    assert set(Job.objects.values_list("state", flat=True)) == {"Dispatched"}
    assert copies(members) == {name: [(3, None)] * step for name in ("north", "south")}
    assert not Work.objects.filter(claimed_at__lt=timezone.now() - timedelta(minutes=1)).exists()
